/** Returns once no process works in the folder any more. */
export async function noProcessesLeft(folder: string): Promise<void> {
  const args = ["-c", 'readlink /proc/[0-9]*/cwd | grep -F -c -- "$1"', "sh", folder];
  for (let left = ""; left !== "0\n";) {
    const found = await new Deno.Command("sh", { args, cwd: "/", stderr: "null" }).output();
    left = new TextDecoder().decode(found.stdout);
  }
}
