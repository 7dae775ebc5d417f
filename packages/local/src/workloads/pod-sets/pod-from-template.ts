/** Pods as a template makes them, and what distinguishes templates. Pure. Source: core/v1 PodTemplateSpec. */
import { createHash } from "node:crypto";
import type { Pod, PodTemplateSpec } from "@longshore/kube";
import { controllerReference, type Owner } from "./claim-pods.ts";

/** The label that names the template of a pod of a DaemonSet or StatefulSet. */
export const revisionLabel = "controller-revision-hash";

/** What a pod is made from. */
export interface PodSource {
  readonly owner: Owner;
  readonly namespace: string;
  readonly template: PodTemplateSpec | undefined;
  /** Labels and annotations beside those of the template. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The pod; the API server completes its name. */
export function podFromTemplate({ owner, namespace, template, labels, annotations }: PodSource): Pod {
  const { metadata, spec } = template ?? {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      generateName: `${owner.name}-`,
      namespace,
      labels: { ...metadata?.labels, ...labels },
      annotations: { ...metadata?.annotations, ...annotations },
      ...(metadata?.finalizers === undefined ? {} : { finalizers: metadata.finalizers }),
      ownerReferences: [controllerReference(owner)],
    },
    spec: spec ?? { containers: [] },
  };
}

/** Letters and digits of which no word and no number is made. */
const hashAlphabet = "bcdfghjklmnpqrstvwxz2456789";
const hashLength = 10;

/** A name for the template: equal templates have equal ones. @param collisions how often it was another template's */
export function templateHash(template: PodTemplateSpec | undefined, collisions = 0): string {
  const digest = createHash("sha256").update(canonicalText(template)).update(`#${collisions}`).digest();
  return Array.from(digest.subarray(0, hashLength), (byte) => hashAlphabet[byte % hashAlphabet.length]).join(
    "",
  );
}

/** The value as text, with the members of objects in one order. */
export function canonicalText(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part: unknown) =>
      part !== null && typeof part === "object" && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
        : part,
    ) ?? ""
  );
}
