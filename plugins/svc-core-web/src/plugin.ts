import type { PluginModule } from "../../../src/plugins/api.ts";
import type { Network } from "./download.ts";
import { PageThreads } from "./page_threads.ts";
import { webFetch } from "./web_fetch.ts";
import { Findings, searchService, webSearch } from "./web_search.ts";

export const { register_tools, register_services } = webPlugin({ resolve });

/** The plugin with the given network and threads. */
export function webPlugin(
  network: Network,
  threads = new PageThreads(),
): Required<Pick<PluginModule, "register_tools" | "register_services">> {
  const web = { network, threads };
  return {
    register_tools(registry) {
      const findings = new Findings();
      registry.register(webSearch(web, findings));
      registry.register(webFetch(web, findings));
    },
    register_services(services) {
      services.register("search", { ...searchService(web) });
    },
  };
}

/** Resolves a name like any program of this machine, with its hosts file. */
async function resolve(host: string): Promise<string[]> {
  const { lookup } = await import("node:dns/promises");
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
