import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { project } from "../support/project.ts";

const UNIT = fileURLToPath(new URL("../../docs/svc-jobs@.service", import.meta.url));

/** Whether systemd is available to check units. */
async function hasSystemd(): Promise<boolean> {
  try {
    return (await new Deno.Command("systemd-analyze", { args: ["--version"] }).output()).success;
  } catch {
    return false;
  }
}

Deno.test({
  name: "the systemd unit of the documentation is one that systemd understands",
  ignore: !await hasSystemd(),
  async fn() {
    await using place = await project();
    // systemd checks that the program exists, which is not installed here.
    const text = Deno.readTextFileSync(UNIT);
    await place.write("svc-jobs@tmp.service", text.replace("%h/.local/bin/svc", "/bin/sh"));
    const { code, stderr } = await new Deno.Command("systemd-analyze", {
      args: ["verify", `${place.path}/svc-jobs@tmp.service`],
    }).output();
    assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""]);
  },
});
