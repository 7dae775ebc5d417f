/** What in-tree volumes need besides their driver: nodes they can reach, secrets, the group of their pods. */
import { nodeSelectorMatches, type PersistentVolume } from "@longshore/kube";
import { translateInTreeStorageClassToCSI } from "@longshore/translation";
import { type AssessView, gatesOf, pluginOfInlineVolume, stateOf, translatedInline } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";
import { translationFault } from "../translation-fault.ts";
import { holdersOf, volumesOf } from "./workload-rules.ts";

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

/** A Secret that the driver is called with. */
interface SecretUse {
  readonly object: string;
  readonly field: string;
  /** `namespace/name`. */
  readonly key: string;
}

function secretRules(view: AssessView): RuleFinding[] {
  const { secrets, unread } = view.inventory;
  const uses = [...secretsOfVolumes(view), ...secretsOfOwnVolumes(view), ...secretsOfClasses(view)];
  if (secrets !== undefined) {
    return uses
      .filter(({ key }) => !secrets.has(key))
      .map(({ object, field, key }) =>
        found("LS1205", { object, field, evidence: `there is no Secret ${key}` }),
      );
  }
  if (uses.length === 0 || unread.has("Secret")) return [];
  const evidence = `translated volumes and classes refer to Secrets in ${uses.length} fields`;
  return [found("LS1005", { object: "kind Secret", evidence })];
}

function secretsIn(csi: PersistentVolume, object: string, field: string): SecretUse[] {
  const source = csi.spec?.csi;
  return secretFields.flatMap((name) => {
    const secret = source?.[name];
    if (secret?.name === undefined) return [];
    return [{ object, field: `${field}.${name} of its CSI form`, key: `${secret.namespace}/${secret.name}` }];
  });
}

function secretsOfVolumes(view: AssessView): SecretUse[] {
  return [...view.translated].flatMap(([name, { csi }]) =>
    secretsIn(csi, `PersistentVolume ${name}`, "spec.csi"),
  );
}

/** Those of volumes that pods and templates describe themselves; faults of the translation are another rule's. */
function secretsOfOwnVolumes(view: AssessView): SecretUse[] {
  return holdersOf(view).flatMap((holder) =>
    volumesOf(holder).flatMap(([field, volume]) => {
      if (pluginOfInlineVolume(volume) === undefined) return [];
      let csi: PersistentVolume | undefined;
      translationFault(() => {
        csi = translatedInline(volume, holder.metadata.namespace ?? "default");
      });
      if (csi === undefined) return [];
      return secretsIn(csi, subjectOf(holder.kind ?? "object", holder), field);
    }),
  );
}

const secretParameter = /^csi\.storage\.k8s\.io\/(.*)-secret-name$/;

/** Names with `${…}` depend on the claim, so nothing is known of them. */
function secretsOfClasses(view: AssessView): SecretUse[] {
  return view.inventory.classes.flatMap((storageClass) => {
    if (gatesOf(storageClass.provisioner) === undefined) return [];
    const { provisioner } = storageClass;
    let parameters: Readonly<Record<string, string>> = {};
    translationFault(() => {
      const csi = translateInTreeStorageClassToCSI(provisioner, storageClass as Translatable);
      parameters = (csi as { parameters?: Record<string, string> }).parameters ?? {};
    });
    return Object.entries(parameters).flatMap(([name, secret]) => {
      const what = secretParameter.exec(name)?.[1];
      const namespace = parameters[`csi.storage.k8s.io/${what}-secret-namespace`];
      if (what === undefined || namespace === undefined || `${secret}${namespace}`.includes("${")) return [];
      const object = `StorageClass ${storageClass.metadata.name}`;
      return [{ object, field: `parameters[${name}] of its CSI form`, key: `${namespace}/${secret}` }];
    });
  });
}

type Translatable = Parameters<typeof translateInTreeStorageClassToCSI>[1];

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
