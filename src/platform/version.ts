import manifest from "../../deno.json" with { type: "json" };

/** The service's version, as `svc --version`, `GET /version` and every new session say it (9.1). */
export const VERSION: string = manifest.version;
