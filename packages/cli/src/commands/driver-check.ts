/** `longshore driver check`: does a driver keep the CSI contract? */
import { grpcConnector } from "@longshore/csi";
import { systemClock } from "@longshore/runtime";
import type { Command } from "commander";
import { interruptible } from "../exit.ts";

/** Adds the verb below `driver`. */
export function registerDriverCheck(driver: Command): void {
  driver
    .command("check")
    .description("find out whether a CSI driver keeps the contract of the CSI specification")
    .requiredOption("--endpoint <endpoint>", "where the driver listens: unix:///path/to/csi.sock")
    .action((flags: { readonly endpoint: string }) =>
      interruptible(async (signal) => {
        const connection = grpcConnector({ clock: systemClock }).connect(flags.endpoint);
        const { name } = await connection.identity.getPluginInfo({}, { signal, timeoutMs: 10_000 });
        connection.close();
        process.stdout.write(`${name} answers\n`);
      }),
    );
}
