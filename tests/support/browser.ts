import fs from "node:fs";
import type { Browser, Page } from "playwright-core";
import { needs } from "./needs.ts";

const CHROMIUM = "/usr/bin/chromium";

/** For `Deno.test`: ignores what needs Chromium where it is not; root installs it where there is apt-get. */
export async function chromium(): Promise<{ ignore: boolean }> {
  return needs("Chromium is not installed", await hasChromium());
}

async function hasChromium(): Promise<boolean> {
  if (await succeeds(CHROMIUM, "--version")) return true;
  if (Deno.uid() !== 0) return false;
  // Several test files may do this at the same time.
  const install = ["-o", "DPkg::Lock::Timeout=120", "install", "--yes", "--quiet"];
  const packages = ["--no-install-recommends", "chromium", "fonts-dejavu-core"];
  for (const update of [false, true]) {
    if (update) await succeeds("apt-get", "update", "--quiet");
    if (await succeeds("apt-get", ...install, ...packages)) break;
  }
  return await succeeds(CHROMIUM, "--version");
}

async function succeeds(program: string, ...args: string[]): Promise<boolean> {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  try {
    const command = new Deno.Command(program, { args, env, stdout: "null", stderr: "null" });
    return (await command.output()).success;
  } catch {
    return false;
  }
}

/** Starts a headless Chromium that makes no requests of its own. */
export async function startBrowser(): Promise<Browser> {
  // The driver looks at files of /proc, which Deno shows to processes with all permissions only.
  const { existsSync } = fs;
  fs.existsSync = (path) => {
    try {
      return existsSync(path);
    } catch {
      return false;
    }
  };
  const { chromium } = await import("playwright-core");
  return await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ],
  });
}

/** The rules of accessibility that a page breaks, each with the first elements that do. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  const { default: axe } = await import("axe-core");
  if (!await page.evaluate("typeof axe === 'object'")) await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run({ resultTypes: ["violations"] })
  );
  return violations.map(({ id, nodes }) =>
    `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" | ")}`
  );
}
