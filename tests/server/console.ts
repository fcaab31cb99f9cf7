import { consoleFolder } from "../../src/server/console.ts";
import { SignIns } from "../../src/server/console/sign_in.ts";
import type { TokenRole } from "../../src/server/admission.ts";
import type { TestServer } from "./support.ts";

/** What a browser gets. */
export interface Visited {
  status: number;
  headers: Headers;
  text: string;
}

type At = { http: Pick<TestServer["http"], "port"> };

/** Signs in with a link as `svc console` makes it. @returns the cookie, as it is sent */
export async function signIn(
  at: At & Pick<TestServer, "workspace">,
  role: TokenRole = "operate",
): Promise<string> {
  const key = new SignIns(consoleFolder(at.workspace), at.workspace.clock).makeLink(role);
  const { headers } = await visit(at, `/console/sign-in?key=${key}`, "");
  return headers.get("set-cookie")!.split(";")[0]!;
}

/** Gets a page, without following a redirect. */
export function visit(
  at: At,
  path: string,
  cookie: string,
  headers: Record<string, string> = {},
): Promise<Visited> {
  return request(at, path, { headers: { cookie, ...headers } });
}

/** Sends a form. */
export function submit(
  at: At,
  path: string,
  cookie: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Visited> {
  return request(at, path, {
    method: "POST",
    body: new URLSearchParams(fields).toString(),
    headers: { cookie, "content-type": "application/x-www-form-urlencoded", ...headers },
  });
}

/** The token in the forms of a viewer. */
export async function formToken(at: At, cookie: string): Promise<string> {
  const { text } = await visit(at, "/console", cookie);
  return /name="form_token" value="([^"]+)"/.exec(text)![1]!;
}

async function request({ http }: At, path: string, init: RequestInit): Promise<Visited> {
  const response = await fetch(`http://127.0.0.1:${http.port}${path}`, {
    ...init,
    redirect: "manual",
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
