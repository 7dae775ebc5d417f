/** Custom resources that hold templates of pods: which they are, and where in them the templates stand. */
import type { KubeObject, Resource } from "@longshore/kube";
import { isObject, member } from "../convert/kube-object.ts";
import type { InventoryKind } from "./inventory-kinds.ts";

/** A kind of custom resources, and where its objects have templates of pods. */
export interface TemplatePath {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Members that lead to the template, or to the pod's spec itself; `*` stands for every item of a list. */
  readonly path: readonly string[];
}

/** A template path that cannot be read: says why. */
export class TemplatePathError extends Error {
  override readonly name = "TemplatePathError";
}

const FORM = /^([a-z0-9][a-z0-9.-]*)\/([a-z0-9]+)\/([a-z][a-z0-9-]*):((?:\.[A-Za-z0-9_-]+|\[\*\])+)$/;

/**
 * Reads `GROUP/VERSION/PLURAL:PATH`, such as `batch.volcano.sh/v1alpha1/jobs:.spec.tasks[*].template`.
 * @throws TemplatePathError
 */
export function parseTemplatePath(text: string): TemplatePath {
  const [, group, version, plural, path] = FORM.exec(text) ?? [];
  if (group === undefined || version === undefined || plural === undefined || path === undefined) {
    throw new TemplatePathError(
      `"${text}" is not GROUP/VERSION/PLURAL:PATH; write it as batch.volcano.sh/v1alpha1/jobs:.spec.tasks[*].template`,
    );
  }
  const members = path.match(/\[\*\]|[^.[\]]+/g) ?? [];
  return { group, version, plural, path: members.map((name) => (name === "[*]" ? "*" : name)) };
}

/** The specs of pods in an object, with their places. */
export interface HeldPodSpec {
  /** e.g. `spec.tasks[0].template.spec`. */
  readonly path: string;
  readonly volumes: readonly unknown[];
}

/** An object of a named kind as the inventory keeps it. */
export interface TemplateHolder extends KubeObject {
  readonly podSpecs: readonly HeldPodSpec[];
}

/** The kind of the inventory for a path. */
export function templateKind(template: TemplatePath): InventoryKind {
  const { group, version, plural, path } = template;
  const resource: Resource<KubeObject> = {
    group,
    versions: [version],
    plural,
    kind: plural,
    namespaced: true,
  };
  return {
    resource,
    list: "workloads",
    essential: false,
    isNamed: true,
    keep(object) {
      const { name = "", namespace = "", ownerReferences = [] } = object.metadata ?? {};
      const podSpecs = podSpecsAt(object, path, "");
      return {
        kind: object.kind ?? plural,
        metadata: { name, namespace, ownerReferences },
        podSpecs,
      } as KubeObject;
    },
  };
}

function podSpecsAt(value: unknown, path: readonly string[], at: string): HeldPodSpec[] {
  const [name, ...rest] = path;
  if (name === "*") {
    if (!Array.isArray(value)) return [];
    return value.flatMap((item, index) => podSpecsAt(item, rest, `${at}[${index}]`));
  }
  if (name !== undefined) {
    const inner = member(value, name);
    return inner === undefined ? [] : podSpecsAt(inner, rest, at === "" ? name : `${at}.${name}`);
  }
  if (!isObject(value)) return [];
  // A template has the pod's spec in it; a path may also lead to the spec itself.
  const isTemplate = isObject(value.spec);
  const { volumes } = isTemplate ? (value.spec as { volumes?: unknown }) : (value as { volumes?: unknown });
  return [{ path: isTemplate ? `${at}.spec` : at, volumes: Array.isArray(volumes) ? volumes : [] }];
}

/** True when objects of `kind` are served under `plural`, as far as the names say: a dump does not say it. */
export function isPluralOf(plural: string, kind: string): boolean {
  const singular = kind.toLowerCase();
  return [`${singular}s`, `${singular}es`, singular.replace(/y$/, "ies"), singular].includes(plural);
}
