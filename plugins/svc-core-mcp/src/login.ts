import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  OAuthMetadata,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import type { LoginDialog, LoginStore, SourceHost } from "../../../src/plugins/api.ts";
import { httpTransport, openServer } from "./client.ts";
import { cleanLine } from "./imported_tools.ts";
import type { ServerSettings } from "./servers.ts";

/** Milliseconds that a person has to log in. */
const PATIENCE = 600_000;

/** What is kept of a login. */
interface Kept {
  client?: StoredOAuthClientInformation;
  tokens?: StoredOAuthTokens;
  discovery?: OAuthDiscoveryState;
}

/** A login that a person makes now. */
interface Attempt {
  /** The address on this machine that the browser is sent to. */
  redirect: string;
  /** Ties the address that comes back to this attempt. */
  state: string;
  show(address: string): void;
}

/**
 * The login to one server over HTTP (OAuth 2.1 with PKCE). It is kept for the server's address, to which alone its
 * tokens are sent. Without an attempt of a person it only refreshes tokens.
 */
export class Login implements OAuthClientProvider {
  readonly #settings: ServerSettings;
  readonly #store: LoginStore;
  readonly #attempt: Attempt | undefined;
  /** Of an attempt, until it has tokens. */
  #new: Kept = {};
  #verifier = "";
  #refresh: string | undefined;
  /** Whether the person was shown an address, or would have to be. */
  needed = false;

  constructor(settings: ServerSettings, store: LoginStore, attempt?: Attempt) {
    this.#settings = settings;
    this.#store = store;
    this.#attempt = attempt;
  }

  get redirectUrl(): string {
    return this.#attempt?.redirect ?? "http://127.0.0.1/callback";
  }

  get clientMetadata(): OAuthClientMetadata {
    return { client_name: "svc", redirect_uris: [this.redirectUrl] };
  }

  state(): string {
    return this.#attempt?.state ?? "";
  }

  clientInformation(
    { issuer }: { issuer?: string } = {},
  ): StoredOAuthClientInformation | undefined {
    const { client, tokens } = this.#kept;
    const { oauth } = this.#settings;
    if (oauth !== undefined) {
      const { client_id, client_secret } = oauth;
      // The secret stays with the authorization server of the login.
      const bound = tokens?.issuer ?? issuer;
      return { client_id, ...client_secret && { client_secret }, ...bound && { issuer: bound } };
    }
    if (client === undefined && this.#attempt === undefined) this.#fail();
    return client;
  }

  saveClientInformation(client: StoredOAuthClientInformation): Promise<void> {
    return this.#keep({ client });
  }

  tokens(): StoredOAuthTokens | undefined {
    const { tokens } = this.#kept;
    this.#refresh = tokens?.refresh_token;
    return tokens;
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    await this.#keep({ tokens });
  }

  saveDiscoveryState(discovery: OAuthDiscoveryState): Promise<void> {
    return this.#keep({ discovery });
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#kept.discovery;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  redirectToAuthorization(address: URL): void {
    if (this.#attempt === undefined) this.#fail();
    if (!["https:", "http:"].includes(address.protocol)) {
      throw new Error("its authorization server has no web address");
    }
    this.needed = true;
    this.#attempt.show(address.href);
  }

  async invalidateCredentials(scope: string): Promise<void> {
    const { client, tokens, discovery } = this.#kept;
    const all = scope === "all";
    // Another process may have refreshed the tokens meanwhile.
    const stale = tokens?.refresh_token === this.#refresh;
    await this.#keep({
      client: all || scope === "client" ? undefined : client,
      tokens: stale && (all || scope === "tokens") ? undefined : tokens,
      discovery: all || scope === "discovery" ? undefined : discovery,
    });
  }

  get #kept(): Kept {
    return this.#attempt === undefined ? this.#store.read(this.#settings.url) ?? {} : this.#new;
  }

  async #keep(change: Kept): Promise<void> {
    const kept = { ...this.#kept, ...change };
    this.#new = kept;
    if (this.#attempt !== undefined && kept.tokens === undefined) return;
    await this.#store.write(this.#settings.url, kept.tokens && { ...kept });
  }

  #fail(): never {
    this.needed = true;
    throw new Error(loginNeeded(this.#settings, "its login has expired"));
  }
}

/** Why a server cannot be used, and the command that helps. */
export function loginNeeded({ name }: ServerSettings, why: string): string {
  return `${why}; log in with: svc mcp login ${name}`;
}

/**
 * Lets a person log in to a server: shows the address of its authorization server, and waits for the answer, which the
 * browser brings to this machine, or the person by pasting the address that the browser was sent to.
 *
 * @returns whether the server wanted a login
 * @throws Error with the reason when there is no login
 */
export async function logIn(
  settings: ServerSettings,
  host: SourceHost,
  { show, pasted, remark, signal }: LoginDialog,
): Promise<boolean> {
  const url = new URL(settings.url);
  if (url.protocol !== "https:" && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)) {
    throw new Error("its address is not https, so a token would be sent in the clear");
  }
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const state = crypto.randomUUID();
  const answered = Promise.withResolvers<URLSearchParams>();
  const receive = (address: URL) => {
    if (address.searchParams.get("state") !== state) return false;
    answered.resolve(address.searchParams);
    return true;
  };
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: settings.oauth?.port ?? 0, signal: over.signal, onListen() {} },
    (request) => {
      const address = new URL(request.url);
      const known = address.pathname === "/callback" && receive(address);
      const text = known ? "svc has received the answer. Close this page." : "Nothing to see here.";
      return new Response(`${text}\n`, { status: known ? 200 : 404 });
    },
  );
  const redirect = `http://127.0.0.1:${server.addr.port}/callback`;
  const login = new Login(settings, host.logins, { redirect, state, show });
  const events = { changed() {}, elicit: () => Promise.resolve({ action: "decline" as const }) };
  try {
    const { client } = await openServer(settings, host, signal, { events, login });
    await client.close();
    return false;
  } catch (error) {
    if (!login.needed) throw new Error(cleanLine((error as Error).message, 400));
    answered.promise.catch(() => {});
    host.sleep(PATIENCE, either).then(
      () => answered.reject(new Error("no answer came in ten minutes")),
      () => answered.reject(new Error("it was cancelled")),
    );
    void paste(pasted, receive, remark).catch(() => {});
    try {
      const transport = await httpTransport(settings, host, login);
      await transport.finishAuth(await answered.promise);
      return true;
    } catch (error) {
      throw new Error(cleanLine((error as Error).message, 400));
    }
  } finally {
    over.abort();
    await server.finished;
  }
}

/**
 * Revokes the tokens of the login that is kept (RFC 7009), where its authorization server can do that, and remarks when
 * they may still be valid.
 */
export async function revokeLogin(
  settings: ServerSettings,
  host: SourceHost,
  { remark, signal }: Pick<LoginDialog, "remark" | "signal">,
): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const { timeout } = settings;
  host.sleep(timeout * 1000, either).then(
    () => over.abort(new Error(`no answer came in ${timeout} seconds`)),
    () => {},
  );
  try {
    await revoke(settings, host, either);
  } catch (error) {
    const why = cleanLine((error as Error).message, 400).replace(/\.$/, "");
    remark(`The tokens could not be revoked, and may be valid until they expire: ${why}.`);
  } finally {
    over.abort();
  }
}

/** @throws Error with the reason when there is a token that may still be valid */
async function revoke(
  settings: ServerSettings,
  { logins, user_agent }: SourceHost,
  signal: AbortSignal,
): Promise<void> {
  const { tokens, discovery }: Kept = logins.read(settings.url) ?? {};
  // The metadata of OpenID Connect may have these fields, too.
  const server = discovery?.authorizationServerMetadata as OAuthMetadata | undefined;
  if (tokens === undefined || !server?.revocation_endpoint) return;
  if (tokens.issuer !== undefined && tokens.issuer !== server.issuer) {
    throw new Error("its authorization server is another one now");
  }
  const { assertSecureTokenEndpoint, selectClientAuthMethod } = await import(
    "@modelcontextprotocol/client"
  );
  const address = assertSecureTokenEndpoint(server.revocation_endpoint);
  const client = new Login(settings, logins).clientInformation(server)!;
  const methods = server.revocation_endpoint_auth_methods_supported ??
    server.token_endpoint_auth_methods_supported ?? [];
  const { client_id, client_secret = "" } = client;
  const basic = selectClientAuthMethod(client, methods) === "client_secret_basic";
  const headers = {
    "user-agent": user_agent,
    ...basic && { authorization: `Basic ${btoa(`${client_id}:${client_secret}`)}` },
  };
  // The refresh token first: without it, the other one expires.
  for (const token_type_hint of ["refresh_token", "access_token"] as const) {
    const token = tokens[token_type_hint];
    if (token === undefined) continue;
    const body = new URLSearchParams({
      ...{ token, token_type_hint },
      ...!basic && { client_id, ...client_secret && { client_secret } },
    });
    const init = { method: "POST", headers, body, signal, redirect: "error" } as const;
    const { ok, status, body: answer } = await fetch(address, init);
    await answer?.cancel();
    if (!ok) throw new Error(`its authorization server answered with HTTP ${status}`);
  }
}

/** Reads addresses that the person pastes, until one is the answer. */
async function paste(
  pasted: AsyncIterable<string>,
  receive: (address: URL) => boolean,
  remark: (text: string) => void,
): Promise<void> {
  for await (const text of pasted) {
    const address = URL.parse(text.trim());
    if (address !== null && receive(address)) return;
    if (text.trim() !== "") remark("That is not the address of this login.");
  }
}
