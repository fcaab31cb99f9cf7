import type { ReportService, ServiceRegistrar } from "../../../src/plugins/api.ts";
import { deliver } from "./deliver.ts";

/** Registers `report`: posts each report to `report.webhook`, when that is set (specification 6.1). */
export function register_services(services: ServiceRegistrar): void {
  const webhook: ReportService = {
    async report(payload, config) {
      const url = config.get("report.webhook");
      if (url !== "") await deliver(url, JSON.stringify(payload), config.get("report.secret"));
    },
  };
  services.register("report", { ...webhook });
}
