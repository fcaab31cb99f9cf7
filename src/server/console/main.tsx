import { Hono } from "hono";
import { getCookie } from "hono/cookie";
import type { Child } from "hono/jsx";
import { digest, requireRole } from "../admission.ts";
import { stripControl } from "../../platform/terminal.ts";
import { type ConsoleContext, consoleFolder } from "../console.ts";
import { HttpError, httpError, readBytes } from "../http.ts";
import { assetResponse } from "./assets.ts";
import { document, fragment, plainDocument } from "./layout.tsx";
import { liveEvents } from "./live.ts";
import { fleetPart } from "./fleet.tsx";
import { inboxPart } from "./inbox.tsx";
import { jobsPart } from "./jobs.tsx";
import { nightPart } from "./night.tsx";
import { usagePart } from "./usage.tsx";
import type { PageRequest } from "./page.ts";
import { sessionPart } from "./session.tsx";
import { sessionsPart } from "./sessions.tsx";
import { SignIns, VALID, type Viewer } from "./sign_in.ts";

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  // With `no-referrer`, a browser would not tell the origin of a form.
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};

const SIGN_IN = "/console/sign-in";

/** The console of one server: sign-in, its pages and forms, the event stream. */
export function consoleHandler(
  context: ConsoleContext,
): (request: Request) => Response | Promise<Response> {
  const { workspace, tokens } = context;
  const { worktree } = workspace.paths;
  const signIns = new SignIns(consoleFolder(workspace), workspace.clock, tokens);
  // Browsers send a cookie to every port of a host: each worktree has its own.
  const cookieName = `svc_${digest(worktree).toHex().slice(0, 12)}`;
  const parts = [
    inboxPart(context),
    nightPart(context),
    jobsPart(context),
    sessionsPart(context),
    sessionPart(context),
    fleetPart(context),
    usagePart(context),
  ];
  const pages = parts.flatMap(({ pages }) => pages);
  const links = pages.flatMap(({ path, nav }) => nav === undefined ? [] : [{ path, nav }]);
  const app = new Hono<{ Variables: { viewer: Viewer } }>();

  const plain = async (status: number, title: string, body: Child) =>
    page(await plainDocument({ title, body }), status);

  const signedIn = (request: Request, key: string, wanted = "") => {
    const cookie = signIns.signIn(key);
    if (cookie === undefined) return undefined;
    const secure = request.headers.get("x-forwarded-proto") === "https" ||
      request.headers.get("origin")?.startsWith("https:");
    const first = links.some(({ path }) => path === wanted) ? wanted : "/console";
    return redirect(first, {
      "set-cookie": `${cookieName}=${cookie}; Path=/console; Max-Age=${VALID.cookie / 1000}; ` +
        `HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`,
    });
  };

  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS)) c.res.headers.set(name, value);
    if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
  });
  app.get("/console/assets/*", (c) => {
    const found = assetResponse(c.req.path);
    if (found === undefined) throw new HttpError(404, "there is no such file");
    return found;
  });
  app.get(SIGN_IN, (c) => {
    const key = c.req.query("key") ?? "";
    // A browser sends the cookie only when no other site led here; a program that previews links sends HEAD.
    const own = ["none", "same-origin", undefined].includes(c.req.header("sec-fetch-site"));
    const direct = own && c.req.method === "GET" && key !== "";
    return (direct ? signedIn(c.req.raw, key, c.req.query("page")) : undefined) ??
      plain(
        key === "" ? 200 : 401,
        "Sign in",
        <SignInForm tokens={tokens !== undefined} link={direct ? "" : key} used={direct} />,
      );
  });
  app.post(SIGN_IN, async (c) => {
    checkOrigin(c.req.raw);
    const form = await formOf(c.req.raw, workspace);
    return signedIn(c.req.raw, form.get("key") ?? "") ??
      plain(401, "Sign in", <SignInForm tokens={tokens !== undefined} link="" used />);
  });

  app.use(async (c, next) => {
    const viewer = signIns.viewer(getCookie(c, cookieName) ?? "");
    if (viewer === undefined) {
      return plain(
        401,
        "Sign in",
        <SignInForm tokens={tokens !== undefined} link="" used={false} />,
      );
    }
    c.set("viewer", viewer);
    await next();
    return undefined;
  });
  app.post("/console/sign-out", async (c) => {
    await checkedForm(c.req.raw, workspace, c.get("viewer"));
    signIns.signOut(getCookie(c, cookieName) ?? "");
    return redirect(SIGN_IN, {
      "set-cookie": `${cookieName}=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict`,
    });
  });
  app.get("/console/events", (c) => {
    return liveEvents(context, { follows: c.req.query("follows") ?? "", parts });
  });
  for (const { path, show } of pages) {
    app.get(path, async (c) => {
      const { viewer } = c.var;
      const query = new URL(c.req.url).searchParams;
      const shown = await show({ params: c.req.param(), query, viewer });
      if (shown instanceof Response) return shown;
      if (c.req.header("console-fragment") !== undefined) return page(await fragment(shown));
      return page(await document(shown, { worktree, path: c.req.path, links, viewer }));
    });
  }
  for (const { path, role, submit } of parts.flatMap(({ forms = [] }) => forms)) {
    app.post(path, async (c) => {
      const { viewer } = c.var;
      const form = await checkedForm(c.req.raw, workspace, viewer);
      requireRole(viewer.role, role);
      const query = new URL(c.req.url).searchParams;
      const request: PageRequest = { params: c.req.param(), query, viewer };
      return redirect(await submit(form, request));
    });
  }
  app.notFound(() => {
    throw new HttpError(404, "there is no such page");
  });
  app.onError(async (error) => {
    const { status, message, headers } = httpError(error);
    if (status === 500) workspace.warn(`A request of the console failed: ${error.message}`);
    const answer = await plain(
      status,
      status === 404 ? "Not found" : status === 403 ? "Not allowed" : "That did not work",
      <>
        <p>{sentence(stripControl(message))}</p>
        <p>
          <a href="/console">To the inbox</a>
        </p>
      </>,
    );
    for (const [name, value] of Object.entries(headers)) answer.headers.set(name, value);
    return answer;
  });
  return (request) => app.fetch(request);
}

/** How a person signs in, or a button for a link that another site led to. */
function SignInForm({ tokens, link, used }: { tokens: boolean; link: string; used: boolean }) {
  if (link !== "") {
    return (
      <form method="post" action={SIGN_IN}>
        <input type="hidden" name="key" value={link} />
        <button type="submit" class="primary">Sign in to the console</button>
      </form>
    );
  }
  return (
    <>
      {used && (
        <p class="error" role="alert">
          This link or token is not valid. A link works once, within {VALID.link / 60_000} minutes.
        </p>
      )}
      <p>
        Run <code>svc console</code>{" "}
        in the worktree on the machine of the server, and open the link that it prints.
      </p>
      {tokens && (
        <form method="post" action={SIGN_IN} class="stack">
          <label for="key">Or sign in with a token of the server</label>
          <input id="key" name="key" type="password" autocomplete="off" required />
          <button type="submit">Sign in</button>
        </form>
      )}
    </>
  );
}

function page(html: string, status = 200): Response {
  return new Response(html, { status, headers: { "content-type": "text/html; charset=utf-8" } });
}

function redirect(location: string, headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 303, headers: { location, ...headers } });
}

/**
 * The fields of a form that this console has shown to this viewer.
 *
 * @throws HttpError 403
 */
async function checkedForm(
  request: Request,
  limits: ConsoleContext["workspace"],
  { formToken }: Viewer,
): Promise<URLSearchParams> {
  checkOrigin(request);
  const form = await formOf(request, limits);
  if (form.get("form_token") === formToken) return form;
  throw new HttpError(403, "this form is not from a page of yours; load the page again");
}

/**
 * Rejects a form of another site: a browser says where one comes from.
 *
 * @throws HttpError 403
 */
function checkOrigin({ headers }: Request): void {
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  const own = origin === null || URL.parse(origin)?.host === headers.get("host")?.toLowerCase();
  if (own && (site === null || site === "same-origin")) return;
  throw new HttpError(403, "this form comes from another site");
}

async function formOf(
  request: Request,
  limits: ConsoleContext["workspace"],
): Promise<URLSearchParams> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\b/i.test(type)) {
    throw new HttpError(415, "the body is not a form");
  }
  return new URLSearchParams(new TextDecoder().decode(await readBytes(request, limits)));
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
