export async function chmod(path: string): Promise<void> {
  await Deno.chmod(path, 0o755);
}

export function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
