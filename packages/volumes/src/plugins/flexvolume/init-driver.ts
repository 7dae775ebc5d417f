/** Asks a driver what it can do. Source: docs/behaviour/flexvolume.md 3, "Plugin creation". */
import { DriverCallError, type FlexVolumeDriver } from "./driver-calls.ts";
import type { InstalledDriver } from "./driver-directory.ts";
import type { DriverCapabilities } from "./driver-status.ts";
import { problemOfAttachableName } from "./flexvolume-names.ts";

/** Runs `init`. @throws DriverCallError when the driver cannot be used */
export async function initDriver(
  driver: FlexVolumeDriver,
  { pluginName, problem }: Pick<InstalledDriver, "pluginName" | "problem">,
  signal: AbortSignal,
): Promise<DriverCapabilities> {
  const refuse = (why: string) => new DriverCallError(`Flexvolume driver ${pluginName}: ${why}`);
  if (problem !== undefined) throw refuse(problem);
  const status = await driver.call("init", [], signal);
  if (status === undefined)
    throw refuse("does not support init, which every driver must: correct the driver");
  const { capabilities } = status;
  const misnamed = capabilities.attach ? problemOfAttachableName(pluginName) : undefined;
  if (misnamed !== undefined) throw refuse(misnamed);
  return capabilities;
}
