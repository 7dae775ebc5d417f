/** Has the API server try the object that takes the place of another, without storing it. */
import type { KubeClient } from "@longshore/kube";
import type { PlannedReplacement, Refusal } from "../conversion-types.ts";
import { probeCreation } from "../probe-creations.ts";
import { replacedResource } from "./observe-replacement.ts";

/** Why the API server would refuse; empty: it would not. @throws what is no answer to the object */
export async function probeReplacement(
  kube: KubeClient,
  { kind, after, key }: PlannedReplacement,
  signal: AbortSignal,
): Promise<readonly Refusal[]> {
  // Under a name of its own: the object itself is there still.
  const { name = "", ...metadata } = after.metadata ?? {};
  const object = { ...after, metadata: { ...metadata, name: `${name.slice(0, 40)}-longshore` } };
  const shown = key.slice(kind.length + 1);
  const refusal = await probeCreation(kube, replacedResource(kind), object, shown, signal);
  return refusal === undefined ? [] : [refusal];
}
