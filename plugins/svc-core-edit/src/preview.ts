/** Milliseconds a comparison may take before the preview shows the new text instead. */
const TIMEOUT = 1000;

/** What a change does to a file, as a unified diff; the whole new text when the two are too different. */
export async function diffPreview(path: string, before: string, after: string): Promise<string> {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import("diff");
  const options = { timeout: TIMEOUT, headerOptions: FILE_HEADERS_ONLY };
  const patch = createTwoFilesPatch(path, path, before, after, "", "", options);
  return patch ?? `${path} is replaced by:\n${after}`;
}
