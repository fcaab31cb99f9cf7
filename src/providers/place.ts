import type { ProviderClass } from "../plugins/api.ts";

/** Where a backend is, for people: its address, or `built in` for one that the program serves itself. */
export function placeOf(cls: ProviderClass | undefined, base_url: string): string {
  return cls?.BUILT_IN && base_url === cls.DEFAULT_BASE_URL ? "built in" : base_url;
}
