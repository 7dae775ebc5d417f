/** Values that both the migration controller and its deployment are given. */
import { UsageError } from "../../exit.ts";
import { labels } from "../sidecars/flag-table.ts";
import { FlagValueError } from "../sidecars/go-values.ts";

/** @throws UsageError naming the flag where no value is given */
export function required(flag: string, value: string): string {
  if (value === "") throw new UsageError(`--${flag} is required`);
  return value;
}

/** `--csi-migration-kubernetes-version`. @throws UsageError when it is no version */
export async function aVersion(given: string): Promise<string> {
  const { isVersion } = await import("@longshore/migration/gardener");
  const flag = "csi-migration-kubernetes-version";
  if (isVersion(required(flag, given))) return given;
  throw new UsageError(`--${flag}: "${given}" is not a version: give one like 1.18.5`);
}

/** `--legacy-storage-classes` of a deployment: legacy provisioner by name of a class. @throws UsageError */
export function legacyClasses(given: string): Readonly<Record<string, string>> {
  if (given === "") return {};
  try {
    return labels("").parse(given);
  } catch (error) {
    if (error instanceof FlagValueError) {
      throw new UsageError(`--legacy-storage-classes: ${error.message}`);
    }
    throw error;
  }
}
