/** An MCP server over HTTP that requires a login, and its authorization server. */
export interface OAuthServer extends Disposable {
  url: string;
  origin: string;
  /** The method and path of each request, with what tells who sent it. */
  seen: string[];
  /** Bodies of the requests for tokens. */
  grants: URLSearchParams[];
  /** The access tokens that are valid. */
  valid: Set<string>;
  /** The refresh token that is valid. */
  refresh: string;
  /** Bodies of the requests to revoke a token. */
  revoked: URLSearchParams[];
  /** The status of their answers; 0: the server has no address for them. */
  revokes: number;
  /** What the authorization endpoint answers in place of a code. */
  error: string;
}

export function oauthServer({ client = "" } = {}): OAuthServer {
  const closing = new AbortController();
  const codes = new Map<string, string>();
  let count = 0;
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", signal: closing.signal, onListen() {} },
    async (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const authorization = request.headers.get("authorization") ?? "";
      const own = request.headers.get("x-own") ?? "";
      at.seen.push([request.method, pathname, authorization, own].filter(Boolean).join(" "));
      switch (pathname) {
        case "/.well-known/oauth-protected-resource/mcp":
          return Response.json({ resource: at.url, authorization_servers: [at.origin] });
        case "/.well-known/oauth-authorization-server":
          return Response.json({
            issuer: at.origin,
            authorization_endpoint: `${at.origin}/authorize`,
            token_endpoint: `${at.origin}/token`,
            registration_endpoint: `${at.origin}/register`,
            response_types_supported: ["code"],
            code_challenge_methods_supported: ["S256"],
            token_endpoint_auth_methods_supported: ["none", "client_secret_post"],
            ...at.revokes > 0 && { revocation_endpoint: `${at.origin}/revoke` },
          });
        case "/register":
          client = `client-${++count}`;
          return Response.json({ ...await request.json(), client_id: client }, { status: 201 });
        case "/authorize": {
          const back = new URL(searchParams.get("redirect_uri")!);
          if (searchParams.get("client_id") !== client) return new Response(null, { status: 400 });
          back.searchParams.set("state", searchParams.get("state")!);
          if (at.error !== "") back.searchParams.set("error", at.error);
          else {
            codes.set(`code-${++count}`, searchParams.get("code_challenge")!);
            back.searchParams.set("code", `code-${count}`);
          }
          return Response.redirect(back, 302);
        }
        case "/token":
          return await token(new URLSearchParams(await request.text()));
        case "/revoke":
          at.revoked.push(new URLSearchParams(await request.text()));
          return new Response(null, { status: at.revokes });
        case "/mcp":
          return await serve(request, authorization);
        default:
          return new Response(null, { status: 404 });
      }
    },
  );
  const origin = `http://127.0.0.1:${server.addr.port}`;
  const at: OAuthServer = {
    url: `${origin}/mcp`,
    origin,
    seen: [],
    grants: [],
    valid: new Set(),
    refresh: "",
    revoked: [],
    revokes: 0,
    error: "",
    [Symbol.dispose]: () => closing.abort(),
  };

  async function token(grant: URLSearchParams): Promise<Response> {
    at.grants.push(grant);
    const verifier = new TextEncoder().encode(grant.get("code_verifier") ?? "");
    const challenge = new Uint8Array(await crypto.subtle.digest("SHA-256", verifier))
      .toBase64({ alphabet: "base64url", omitPadding: true });
    const code = grant.get("code") ?? "";
    const good = grant.get("grant_type") === "refresh_token"
      ? at.refresh !== "" && grant.get("refresh_token") === at.refresh
      : codes.get(code) === challenge;
    if (!good) return Response.json({ error: "invalid_grant" }, { status: 400 });
    codes.delete(code);
    const access_token = `access-token-${++count}`;
    at.valid.add(access_token);
    at.refresh = `refresh-token-${count}`;
    return Response.json({ access_token, token_type: "Bearer", refresh_token: at.refresh });
  }

  async function serve(request: Request, authorization: string): Promise<Response> {
    if (!at.valid.has(authorization.replace("Bearer ", ""))) {
      const metadata = `${at.origin}/.well-known/oauth-protected-resource/mcp`;
      const headers = { "www-authenticate": `Bearer resource_metadata="${metadata}"` };
      return new Response(null, { status: 401, headers });
    }
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = await request.json();
    const reply = (result: unknown) => Response.json({ jsonrpc: "2.0", id, result });
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === "server/discover") return new Response("what?", { status: 400 });
    if (method === "tools/list") {
      return reply({ tools: [{ name: "run", inputSchema: { type: "object" } }] });
    }
    if (method === "tools/call") {
      return reply({ content: [{ type: "text", text: `${authorization} came` }] });
    }
    const { protocolVersion } = params;
    const serverInfo = { name: "far", version: "1" };
    return reply({ protocolVersion, capabilities: { tools: {} }, serverInfo });
  }
  return at;
}
