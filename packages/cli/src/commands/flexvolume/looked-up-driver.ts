/** The driver that an argument names: the path of a program, or an installed driver. */
import { statSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Host } from "@longshore/runtime";
import { type InstalledDriver, lookAtDriverDirectory, namesOfDirectory } from "@longshore/volumes";
import { absolute } from "../../environment.ts";
import { UsageError } from "../../exit.ts";

/** What is known of a driver before it runs. */
export type FoundDriver = Pick<InstalledDriver, "pluginName" | "executable" | "problem">;

/** Vendor of a program that lies in no driver directory; no other component sees it. */
const noVendor = "local";

/** Finds the driver. @param directory the driver directory; asked only for the name of an installed one */
export async function lookedUpDriver(
  host: Host,
  argument: string,
  directory: () => Promise<string>,
): Promise<FoundDriver> {
  const executable = absolute(argument);
  const stat = statSync(executable, { throwIfNoEntry: false });
  if (stat?.isFile() === true) {
    const own = namesOfDirectory(basename(dirname(executable)));
    const program = basename(executable);
    const pluginName = own.executable === program ? own.pluginName : `${noVendor}/${program}`;
    const problem =
      (stat.mode & 0o111) === 0 ? "its program cannot be executed: make its mode 0755" : undefined;
    return { pluginName, executable, problem };
  }
  const root = await directory();
  for (const installed of (await lookAtDriverDirectory(host, root)).drivers.values())
    if (installed.pluginName === argument) return installed;
  throw new UsageError(
    `${argument} is neither a file nor a driver in ${root}: see longshore flexvolume list`,
  );
}
