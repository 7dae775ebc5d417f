/**
 * Who writes an object and would write it again in its old form: Helm, Argo CD, Flux, or a controller. Pure. Sources: the labels
 * and annotations that these tools document; ownerReferences (meta/v1).
 */
import type { KubeObject } from "@longshore/kube";
import { formatYaml } from "../../convert/yaml-text.ts";
import type { ObjectOwner } from "../conversion-types.ts";
import { authoredMetadata } from "./differences.ts";

/**
 * The owners of an object, each with the change to commit.
 * @param after what takes its place; undefined: it goes
 */
export function ownersOf(object: KubeObject, after: KubeObject | undefined): readonly ObjectOwner[] {
  const marks = { ...object.metadata?.labels, ...object.metadata?.annotations };
  return [...helm(marks), ...argoCD(marks), ...flux(marks)]
    .map(
      (owner): ObjectOwner => ({
        ...owner,
        change: `${owner.pause} ${changeOf(object, after, owner.where)}`,
      }),
    )
    .map(({ kind, name, change }) => ({ kind, name, change }))
    .concat(controllersOf(object, after));
}

interface Tool {
  readonly kind: ObjectOwner["kind"];
  readonly name: string;
  /** What keeps it from writing the old form while the objects are changed. */
  readonly pause: string;
  /** Where its manifest is. */
  readonly where: string;
}

type Marks = Readonly<Record<string, string>>;

function helm(marks: Marks): Tool[] {
  const release = marks["meta.helm.sh/release-name"];
  const isHelms = marks["app.kubernetes.io/managed-by"] === "Helm" || release !== undefined;
  // Helm 2 wrote labels only.
  const isTillers = marks.heritage === "Tiller" && marks.release !== undefined;
  if (!isHelms && !isTillers) return [];
  const namespace = marks["meta.helm.sh/release-namespace"];
  const name = `release ${release ?? marks.release ?? "of an unknown name"}`;
  return [
    {
      kind: "Helm",
      name: namespace === undefined ? name : `${name} in namespace ${namespace}`,
      pause: "Do not upgrade or roll back the release until the chart is changed.",
      where: "the chart or its values",
    },
  ];
}

function argoCD(marks: Marks): Tool[] {
  // APPLICATION:GROUP/KIND:NAMESPACE/NAME
  const application =
    marks["argocd.argoproj.io/tracking-id"]?.split(":", 1)[0] ?? marks["argocd.argoproj.io/instance"];
  if (application === undefined) return [];
  return [
    {
      kind: "Argo CD",
      name: `application ${application}`,
      pause: `Switch automated sync of the application off (spec.syncPolicy.automated) before the conversion, and on again after it.`,
      where: "the application's repository",
    },
  ];
}

const fluxControllers = [
  ["kustomize.toolkit.fluxcd.io", "Kustomization"],
  ["helm.toolkit.fluxcd.io", "HelmRelease"],
] as const;

function flux(marks: Marks): Tool[] {
  return fluxControllers.flatMap(([group, kind]) => {
    const name = marks[`${group}/name`];
    if (name === undefined) return [];
    const namespace = marks[`${group}/namespace`];
    return [
      {
        kind: "Flux" as const,
        name: `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`,
        pause: "Suspend it (spec.suspend: true) before the conversion, and resume it after the commit.",
        where: "its source",
      },
    ];
  });
}

function controllersOf(object: KubeObject, after: KubeObject | undefined): ObjectOwner[] {
  const { namespace = "", ownerReferences = [] } = object.metadata ?? {};
  return ownerReferences.map(({ kind, name }) => {
    const owner = namespace === "" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
    return {
      kind: "controller",
      name: owner,
      change: `Have the controller of ${owner} rest until the conversion has ended; ${changeOf(object, after, owner)}`,
    };
  });
}

function changeOf(object: KubeObject, after: KubeObject | undefined, where: string): string {
  const { kind = "object" } = object;
  const name = object.metadata?.name ?? "";
  if (after === undefined) return `Remove ${kind} ${name} from ${where}.`;
  const shown = partToCommit(after);
  const verb = after.metadata?.name === name ? `change ${kind} ${name} to` : `replace ${kind} ${name} by`;
  return `In ${where}, ${verb}:\n${formatYaml(shown)}`;
}

/** Of a claim the part that matters: its other fields are as they were. */
function partToCommit(after: KubeObject): object {
  const { status: _status, ...rest } = after as KubeObject & { status?: unknown };
  if (after.kind === "PersistentVolumeClaim") {
    const { accessModes, volumeName } =
      (after as { spec?: { accessModes?: unknown; volumeName?: unknown } }).spec ?? {};
    const { name, namespace } = after.metadata ?? {};
    return { ...identityOf(after), metadata: { name, namespace }, spec: { accessModes, volumeName } };
  }
  return { ...rest, metadata: { ...authoredMetadata(after.metadata) } };
}

const identityOf = ({ apiVersion, kind }: KubeObject): object => ({ apiVersion, kind });
