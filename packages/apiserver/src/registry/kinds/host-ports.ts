/** Ports of pods that use the network of their node: each is a port of the node (core/v1 defaults, validateHostNetwork). */
import type { KubeObject } from "@longshore/kube";
import { type FieldProblem, invalidValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { type Loose, mapItems, withDefaults, withMember } from "./shaping.ts";

const ofWorkload = ["spec", "template", "spec"];

/** Where kinds have the spec of a pod, or of those that they make. */
const specs: Readonly<Record<string, readonly string[]>> = {
  Pod: ["spec"],
  ReplicationController: ofWorkload,
  Deployment: ofWorkload,
  ReplicaSet: ofWorkload,
  StatefulSet: ofWorkload,
  DaemonSet: ofWorkload,
  Job: ofWorkload,
  PodTemplate: ["template", "spec"],
  CronJob: ["spec", "jobTemplate", "spec", "template", "spec"],
};

/** The kind with host ports filled, where it has a pod's spec in which that version fills them. */
export function withHostPorts(kind: Kind, version: EmulatedVersion): Kind {
  const path = Object.hasOwn(specs, kind.kind) ? specs[kind.kind] : undefined;
  if (path === undefined || (kind.kind !== "Pod" && !version.has("hostPortsInTemplates"))) return kind;
  const filled = (object: KubeObject) => at(object as Loose, path, specWithHostPorts) as KubeObject;
  return { ...kind, defaults: (object) => filled(kind.defaults?.(object) ?? object) };
}

function at(object: Loose, [member, ...rest]: readonly string[], change: (spec: Loose) => Loose): Loose {
  if (member === undefined) return change(object);
  return withMember(object, member, (value) => at(value, rest, change));
}

function specWithHostPorts(spec: Loose): Loose {
  if (spec.hostNetwork !== true) return spec;
  return ["containers", "initContainers"].reduce(
    (result, list) =>
      withMember(result, list, (containers) =>
        mapItems(containers, (container) =>
          withMember(container, "ports", (ports) =>
            mapItems(ports, (port) =>
              port.containerPort ? withDefaults(port, { hostPort: port.containerPort }) : port,
            ),
          ),
        ),
      ),
    spec,
  );
}

/** On the network of the node, a port is the same inside and outside of the container. */
export function hostNetworkProblems(spec: Loose, path: string): FieldProblem[] {
  if (spec.hostNetwork !== true) return [];
  return ((spec.containers ?? []) as readonly Loose[]).flatMap((container, i) =>
    ((container.ports ?? []) as readonly Loose[]).flatMap(({ hostPort = 0, containerPort = 0 }, j) =>
      hostPort === 0 || hostPort === containerPort
        ? []
        : [
            invalidValue(
              `${path}.containers[${i}].ports[${j}].containerPort`,
              containerPort,
              "must match `hostPort` when `hostNetwork` is true",
            ),
          ],
    ),
  );
}
