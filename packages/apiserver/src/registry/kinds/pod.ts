/** Pod (kubernetes pkg/registry/core/pod, pkg/apis/core/validation ValidatePodUpdate). */
import type { KubeObject, Stored } from "@longshore/kube";
import { ByJson } from "../../api/by-json.ts";
import { type FieldProblem, forbiddenValue, invalidValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { sameJson } from "../../api/own.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { podSpecDefaults, podSpecProblems, requestDefaults } from "./pod-spec-problems.ts";
import { qosClass } from "./qos-class.ts";
import {
  immutable,
  type Loose,
  type LooseObject,
  mapItems,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";

const text = (value: unknown): string => (value === undefined ? "" : String(value));

function fields(object: KubeObject): Readonly<Record<string, string>> {
  const { spec, status } = object as LooseObject;
  return {
    "spec.nodeName": text(spec?.nodeName),
    "spec.restartPolicy": text(spec?.restartPolicy),
    "spec.schedulerName": text(spec?.schedulerName),
    "spec.serviceAccountName": text(spec?.serviceAccountName),
    "status.phase": text(status?.phase),
    "status.podIP": text(status?.podIP),
    "status.nominatedNodeName": text(status?.nominatedNodeName),
  };
}

/** The address in both of its forms, and a past for every container. */
function statusDefaults(status: Loose): Loose {
  // The single address counts: old kubelets set nothing else (core/v1 conversion).
  const first = status.podIP && status.podIPs?.[0]?.ip !== status.podIP;
  const addressed = first ? { ...status, podIPs: [{ ip: status.podIP }] } : status;
  return withMember(addressed, "containerStatuses", (list) =>
    mapItems(list, (container) => withDefaults(container, { state: {}, lastState: {} })),
  );
}

/** Claims of the pod's own are volumes only where their gate is on. */
function withoutEphemeral(object: LooseObject): LooseObject {
  return withMember(object, "spec", (spec) =>
    withMember(spec, "volumes", (volumes) => mapItems(volumes, (volume) => without(volume, "ephemeral"))),
  );
}

function prepareCreate(object: KubeObject, version: EmulatedVersion): KubeObject {
  const pod = version.gate("GenericEphemeralVolume")
    ? (object as LooseObject)
    : withoutEphemeral(object as LooseObject);
  return { ...pod, status: { phase: "Pending", qosClass: qosClass(pod.spec ?? {}) } } as KubeObject;
}

const updateRule =
  "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds` or `spec.tolerations` (only additions to existing tolerations)";

/** The spec without what may be changed. */
function fixedPart(spec: Loose): Loose {
  let fixed = without(without(spec, "activeDeadlineSeconds"), "tolerations");
  for (const list of ["containers", "initContainers"]) {
    fixed = withMember(fixed, list, (items) => mapItems(items, (container) => without(container, "image")));
  }
  return fixed;
}

function validateUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const [spec, before] = [(next as LooseObject).spec ?? {}, (old as LooseObject).spec ?? {}];
  if (spec === before || sameJson(spec, before)) return [];
  const counts = (list: string) => (spec[list] ?? []).length !== (before[list] ?? []).length;
  const resized = ["containers", "initContainers"].find(counts);
  if (resized !== undefined) {
    return [forbiddenValue(`spec.${resized}`, "pod updates may not add or remove containers")];
  }
  const problems: FieldProblem[] = [];
  const kept: readonly Loose[] = spec.tolerations ?? [];
  const tolerations: readonly Loose[] = before.tolerations ?? [];
  const there = new ByJson<true>();
  for (const toleration of kept) there.set(without(toleration, "tolerationSeconds"), true);
  if (!tolerations.every((toleration) => there.has(without(toleration, "tolerationSeconds")))) {
    problems.push(
      forbiddenValue(
        "spec.tolerations",
        "existing toleration can not be modified except its tolerationSeconds",
      ),
    );
  }
  const deadline = deadlineProblems(spec.activeDeadlineSeconds, before.activeDeadlineSeconds);
  if (deadline.length > 0) return [...problems, ...deadline];
  if (!sameJson(fixedPart(spec), fixedPart(before))) problems.push(forbiddenValue("spec", updateRule));
  return problems;
}

const secondsMax = 2 ** 31 - 1;

/** A deadline can come nearer, and cannot be taken away. */
function deadlineProblems(seconds: number | undefined, before: number | undefined): FieldProblem[] {
  const at = "spec.activeDeadlineSeconds";
  if (seconds !== undefined && (seconds < 0 || seconds > secondsMax)) {
    return [invalidValue(at, seconds, `must be between 0 and ${secondsMax}, inclusive`)];
  }
  if (before === undefined) return [];
  if (seconds === undefined) {
    return [invalidValue(at, seconds, "must not update from a positive integer to nil value")];
  }
  return seconds > before ? [invalidValue(at, seconds, "must be less than or equal to previous value")] : [];
}

/** A token in a volume is one of the pod's service account, which must be named. */
function tokenProblems({ serviceAccountName, volumes = [] }: Loose): FieldProblem[] {
  if (serviceAccountName) return [];
  return (volumes as readonly Loose[]).flatMap((volume, i) =>
    ((volume.projected?.sources ?? []) as readonly Loose[]).flatMap((source, j) =>
      source.serviceAccountToken === undefined
        ? []
        : [
            forbiddenValue(
              `spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`,
              "must not be specified when serviceAccountName is not set",
            ),
          ],
    ),
  );
}

/** A status update cannot move the pod. */
function validateStatusUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const nominated = (next as LooseObject).spec?.nodeName;
  const was = (old as LooseObject).spec?.nodeName;
  return nominated === was ? [] : [invalidValue("status.nodeName", nominated, immutable)];
}

const partVerbs = ["get", "patch", "update"];

function subresources(version: EmulatedVersion): NonNullable<Kind["subresources"]> {
  const policyVersion = version.has("policyV1Eviction") ? "v1" : "v1beta1";
  const upgraded = (kind: string) => ({ kind, verbs: ["create", "get"], isOfNode: true }) as const;
  return {
    attach: upgraded("PodAttachOptions"),
    binding: { kind: "Binding", verbs: ["create"] },
    ...(version.has("ephemeralContainersOfPod")
      ? { ephemeralcontainers: { kind: "Pod", verbs: partVerbs } }
      : {}),
    eviction: { group: "policy", version: policyVersion, kind: "Eviction", verbs: ["create"] },
    exec: upgraded("PodExecOptions"),
    log: { kind: "Pod", verbs: ["get"] },
    portforward: upgraded("PodPortForwardOptions"),
    ...(version.has("podResize") ? { resize: { kind: "Pod", verbs: partVerbs } } : {}),
  };
}

/** The kind Pod, as that version of Kubernetes has it. */
export const pod = (version: EmulatedVersion): Kind => ({
  group: "",
  versions: ["v1"],
  kind: "Pod",
  plural: "pods",
  shortNames: ["po"],
  categories: ["all"],
  namespaced: true,
  statusSubresource: true,
  answersDeleted: true,
  subresources: subresources(version),
  fields,
  defaults: (object) =>
    withMember(
      withMember(withDefaults(object as LooseObject, { spec: {} }), "spec", (spec) =>
        withDefaults(requestDefaults(podSpecDefaults(spec)), { enableServiceLinks: true }),
      ),
      "status",
      statusDefaults,
    ),
  prepareCreate: (object) => prepareCreate(object, version),
  // Status belongs to the sub-resource, and qosClass to the server.
  prepareStatusUpdate: (next, old) => {
    const { status = {} } = next as LooseObject;
    const qos = (old as LooseObject).status?.qosClass;
    return qos === undefined || status.qosClass !== undefined
      ? next
      : ({ ...next, status: { ...status, qosClass: qos } } as KubeObject);
  },
  validate: (object) => {
    const { spec = {} } = object as LooseObject;
    return [...podSpecProblems(spec, "spec"), ...tokenProblems(spec)];
  },
  validateUpdate,
  validateStatusUpdate,
});
