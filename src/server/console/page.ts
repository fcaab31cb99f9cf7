import type { Child } from "hono/jsx";
import type { TokenRole } from "../admission.ts";
import type { Viewer } from "./sign_in.ts";

/** A request for a page. */
export interface PageRequest {
  /** The values of the path's parameters. */
  params: Record<string, string>;
  query: URLSearchParams;
  viewer: Viewer;
}

/** A page as it is shown. */
export interface Page {
  title: string;
  body: Child;
  /** The session whose changes the page follows; its topic is `session`. Default: none. */
  follows?: string;
}

/** A page of the console: `show` reads plain data and renders them. */
export interface PageRoute {
  path: string;
  /** Its name in the navigation. Left out: it is not there. */
  nav?: string;
  /** @throws HttpError 404 */
  show(request: PageRequest): Page | Response | Promise<Page | Response>;
}

/** A form of the console. */
export interface FormRoute {
  path: string;
  role: TokenRole;
  /**
   * Makes the change.
   *
   * @returns the path of the page to show next
   */
  submit(form: URLSearchParams, request: PageRequest): string | Promise<string>;
}

/** The part of the console that one module has. */
export interface ConsolePart {
  pages: PageRoute[];
  forms?: FormRoute[];
  /** Each text differs when the topic may have changed. It is called every second: it reads no long file. */
  stamps?(): Partial<Record<Topic, string>>;
}

/** A part of the worktree that may change. Regions of pages with `data-live` name the ones that they show. */
export type Topic = "asks" | "jobs" | "sessions" | "runs" | "session" | "trust" | "fleet";
