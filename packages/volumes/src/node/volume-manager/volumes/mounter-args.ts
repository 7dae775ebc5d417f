/** What a pod says of the ownership of its volumes. Pure. Source: docs/behaviour/node-agent.md 7.3. */
import type { Pod } from "@longshore/kube";
import type { MounterArgs } from "../../../framework/volume-plugin.ts";
import type { DesiredPod } from "../desired-state.ts";

/** The arguments of the pod's mount. */
export function mounterArgsOf({ pod, outerNames }: Pick<DesiredPod, "pod" | "outerNames">): MounterArgs {
  const { fsGroup, fsGroupChangePolicy } = pod.spec?.securityContext ?? {};
  const seLinuxLabel = seLinuxLabelOf(pod, outerNames);
  return {
    ...(fsGroup != null && { fsGroup }),
    ...(fsGroupChangePolicy != null && {
      fsGroupChangePolicy: fsGroupChangePolicy as "OnRootMismatch" | "Always",
    }),
    ...(seLinuxLabel !== undefined && { seLinuxLabel }),
  };
}

/**
 * The label of the volume's files: that of all containers that mount it. Undefined where one of them has none with a
 * level, or two differ: then the container runtime labels the files. The other parts are those that runtimes give to files
 * (container-selinux).
 */
function seLinuxLabelOf({ spec }: Pod, volumeNames: ReadonlySet<string>): string | undefined {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const labels = containers
    .filter(({ volumeMounts = [] }) => volumeMounts.some(({ name }) => volumeNames.has(name)))
    .map(({ securityContext }) => {
      const { user, level } = securityContext?.seLinuxOptions ?? spec?.securityContext?.seLinuxOptions ?? {};
      // Role and type that a pod names are those of its processes.
      const label = `${user ?? "system_u"}:object_r:container_file_t:${level}`;
      return level != null && isLabel(label) ? label : undefined;
    });
  const [first] = labels;
  return labels.every((label) => label === first) ? first : undefined;
}

/** A label becomes part of a mount option, which it must not end. */
function isLabel(text: string): boolean {
  return /^\w+:\w+:\w+:[\w.:,-]+$/.test(text);
}
