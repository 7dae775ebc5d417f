/** What in-tree volumes need besides their driver: nodes they can reach, secrets, the group of their pods. */
import { nodeSelectorMatches, type PersistentVolume } from "@longshore/kube";
import { type AssessView, stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";

/** Findings about the surroundings of volumes. */
export function useRules(view: AssessView): RuleFinding[] {
  return [...topologyRules(view), ...secretRules(view), ...groupRules(view)];
}

function topologyRules(view: AssessView): RuleFinding[] {
  if (view.inventory.unread.has("Node")) return [];
  // One look at the nodes for each zone, whatever the number of its volumes.
  const reached = new Map<string, boolean>();
  return [...view.translated].flatMap(([name, { csi, gates }]) => {
    const required = csi.spec?.nodeAffinity?.required;
    if (required === undefined || stateOf(view, gates) !== "redirected") return [];
    const text = JSON.stringify(required);
    let isReached = reached.get(text);
    if (isReached === undefined) {
      isReached = view.inventory.nodes.some((node) => nodeSelectorMatches(node, required));
      reached.set(text, isReached);
    }
    if (isReached) return [];
    const terms = required.nodeSelectorTerms.flatMap(({ matchExpressions = [] }) =>
      matchExpressions.map(({ key, operator, values = [] }) => `${key} ${operator} ${values.join("|")}`),
    );
    const evidence = `in its CSI form it asks for ${terms.join(", ")}, which no node has`;
    const field = "spec.nodeAffinity";
    return [found("LS1206", { object: `PersistentVolume ${name}`, field, evidence })];
  });
}

const secretFields = [
  "nodeStageSecretRef",
  "nodePublishSecretRef",
  "controllerPublishSecretRef",
  "controllerExpandSecretRef",
  "nodeExpandSecretRef",
] as const;

function secretRules(view: AssessView): RuleFinding[] {
  const { secrets, unread } = view.inventory;
  let referred = 0;
  const findings = [...view.translated].flatMap(([name, { csi }]) => {
    const source = csi.spec?.csi;
    const missing = secretFields.flatMap((field) => {
      const secret = source?.[field];
      if (secret?.name === undefined) return [];
      referred += 1;
      const key = `${secret.namespace}/${secret.name}`;
      return secrets === undefined || secrets.has(key) ? [] : [{ field, key }];
    });
    return missing.map(({ field, key }) =>
      found("LS1205", {
        object: `PersistentVolume ${name}`,
        field: `spec.csi.${field} of its CSI form`,
        evidence: `there is no Secret ${key}`,
      }),
    );
  });
  if (secrets !== undefined || referred === 0 || unread.has("Secret")) return findings;
  const evidence = `translated volumes refer to Secrets in ${referred} fields`;
  return [found("LS1005", { object: "kind Secret", evidence })];
}

function groupRules(view: AssessView): RuleFinding[] {
  const policies = new Map(
    view.inventory.csiDrivers.map(({ metadata, spec }) => [metadata.name, spec?.fsGroupPolicy]),
  );
  return view.uses.flatMap((use) => {
    const group = use.pod.spec?.securityContext?.fsGroup;
    const csi = view.translated.get(use.pv?.metadata.name ?? "")?.csi;
    if (group === undefined || csi === undefined) return [];
    const policy = policies.get(use.driver) ?? "ReadWriteOnceWithFSType";
    const why = notApplied(csi, policy);
    if (why === undefined) return [];
    return [
      found("LS1209", {
        object: `Pod ${use.pod.metadata.namespace}/${use.pod.metadata.name}`,
        field: "spec.securityContext.fsGroup",
        evidence: `fsGroup ${group} is not applied to ${use.what}: fsGroupPolicy of ${use.driver} is ${policy}${why}`,
      }),
    ];
  });
}

/** Why the group is not applied to the volume, or undefined when it is. Source: docs/behaviour/csi-plugin.md 7. */
function notApplied(csi: PersistentVolume, policy: string): string | undefined {
  if (policy === "File") return undefined;
  if (policy === "None") return "";
  if ((csi.spec?.csi?.fsType ?? "") === "") return ", and the volume names no file system type";
  const modes = csi.spec?.accessModes ?? [];
  return modes.every((mode) => mode === "ReadWriteOnce")
    ? undefined
    : `, and its modes are ${modes.join(", ")}`;
}
