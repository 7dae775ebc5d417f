/** The flag that says how large disks are: a claim states a size, and a pod that describes its disk itself does not. */
import { parseQuantity } from "@longshore/kube";
import type { ClaimSizes } from "@longshore/migration";
import { InvalidArgumentError } from "commander";

/** Parses one `[VOLUME=]SIZE`; it may be given several times. @throws InvalidArgumentError */
export function claimSizes(value: string, before: ClaimSizes | undefined): ClaimSizes {
  const at = value.lastIndexOf("=");
  const size = value.slice(at + 1);
  let isSize: boolean;
  try {
    isSize = parseQuantity(size).sign() > 0;
  } catch {
    isSize = false;
  }
  if (!isSize) throw new InvalidArgumentError("Give a size such as 10Gi, or VOLUME=10Gi.");
  const byVolume = new Map(before?.byVolume);
  if (at < 0) return { others: size, byVolume };
  byVolume.set(value.slice(0, at), size);
  return { others: before?.others, byVolume };
}
