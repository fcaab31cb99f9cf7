import { basename } from "node:path";
import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { CONTROL, stripControl } from "../../platform/terminal.ts";
import { SCRIPT, STYLE } from "./assets.ts";
import { Action } from "./components.tsx";
import type { Page } from "./page.ts";
import type { Viewer } from "./sign_in.ts";

/** What every page shows around its own content. */
export interface Frame {
  worktree: string;
  /** The path of the page. */
  path: string;
  /** The navigation. */
  links: { path: string; nav: string }[];
  viewer: Viewer;
}

/** The document of a page. */
export function document(page: Page, { worktree, path, links, viewer }: Frame): Promise<string> {
  const current = links.filter((link) => path === link.path || path.startsWith(`${link.path}/`))
    .at(-1);
  const name = stripControl(basename(worktree));
  return html(
    <Html title={`${page.title} · ${name}`} script>
      <a class="skip" href="#main">Skip to the content</a>
      <header class="top">
        <p class="brand">
          <span class="product">svc</span> <span title={stripControl(worktree)}>{name}</span>
        </p>
        <nav aria-label="Console">
          {links.map((link) => (
            <a href={link.path} aria-current={link === current ? "page" : undefined}>{link.nav}</a>
          ))}
        </nav>
        <div class="viewer">
          <span id="live-state" role="status"></span>
          <span class="role" title="What you may do here">{viewer.role}</span>
          <Action viewer={viewer} role="read" action="/console/sign-out">Sign out</Action>
        </div>
      </header>
      <Main page={page} />
    </Html>,
  );
}

/** The content of a page without its frame, in which the script finds the regions that changed. */
export function fragment(page: Page): Promise<string> {
  return html(<Main page={page} />);
}

function Main({ page: { title, body, follows } }: { page: Page }): JSX.Element {
  return (
    <main id="main" tabindex={-1} data-follows={follows}>
      <h1>{stripControl(title)}</h1>
      {body}
    </main>
  );
}

/** A page for a caller who is not signed in, or an error: it has no navigation. */
export function plainDocument({ title, body }: Page): Promise<string> {
  return html(
    <Html title={title}>
      <main id="main" class="plain">
        <p class="brand">
          <span class="product">svc</span>
        </p>
        <h1>{title}</h1>
        {body}
      </main>
    </Html>,
  );
}

function Html({ title, script, children }: {
  title: string;
  script?: boolean;
  children: Child;
}): JSX.Element {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={STYLE.path} />
        {script && <script src={SCRIPT.path} defer></script>}
      </head>
      <body>{children}</body>
    </html>
  );
}

const CONTROLS = new RegExp(CONTROL.source, "gu");

/** Pages clean what they show; this keeps a control character out of a page that forgot it. */
async function html(element: JSX.Element): Promise<string> {
  return `<!doctype html>\n${String(await element).replace(CONTROLS, "")}`;
}
