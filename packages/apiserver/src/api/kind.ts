/** What the registry knows about a kind: where it is served, and its rules as pure functions. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Column } from "./column.ts";
import type { CustomSchema } from "./custom-schema.ts";
import type { FieldProblem } from "./errors.ts";
import type { FieldType } from "./field-type.ts";

/** How discovery describes a sub-resource. */
export interface SubresourceInfo {
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
  /** A node answers, before the registry is asked (`http-node-proxy.ts`): discovery alone names it. */
  readonly isOfNode?: true;
}

/** Translates between the stored form of a kind and the form of a version. Pure; apiVersion and kind are set by others. */
export interface Conversion {
  toStored(object: KubeObject, version: string): KubeObject;
  fromStored(object: Stored, version: string): KubeObject;
}

/** The additional members of a kind that comes from a CustomResourceDefinition. */
export interface CustomKind {
  /** The kind of its lists. */
  readonly listKind: string;
  /** The kind as that version of it has it; itself for a version that it does not have. */
  inVersion(version: string): Kind;
  /** The structural schema of that version (a JSON schema of apiextensions.k8s.io/v1), if it has one. */
  schemaOf(version: string): CustomSchema | undefined;
  /** The warning for clients that use that version; undefined when it is not deprecated. */
  deprecation(version: string): string | undefined;
  /**
   * A new or changed object as the server takes it: with metadata of the right types, without members that the schema
   * does not have, with the schema's defaults. Pure. @throws KubeApiError 400
   */
  read(object: KubeObject, version: string): KubeObject;
  /** Paths of the members that {@link read} drops: `spec.size`. */
  unknownFields(object: KubeObject, version: string): readonly string[];
  /** The definition is being deleted: objects cannot be made any more. */
  readonly isTerminating: boolean;
}

/** Where a custom resource keeps what the `scale` sub-resource shows. */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** A kind of the API. */
export interface Kind {
  readonly group: string;
  /** Versions served, the preferred one first. Objects are the same in all of them, unless `conversion` says more. */
  readonly versions: readonly [string, ...string[]];
  /** The version in which objects are stored; default: the first of `versions`. */
  readonly storageVersion?: string;
  readonly kind: string;
  readonly plural: string;
  /** What only kinds of CustomResourceDefinitions have. */
  readonly custom?: CustomKind;
  /** The name of one object in texts; default: the kind in lower case. */
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly namespaced: boolean;
  /** Answered at once and never stored, as reviews are: it can be created only. */
  readonly virtual?: boolean;
  /** Between the stored form and that of each version; left out where all versions are alike. */
  readonly conversion?: Conversion;
  /** Objects are kept in the table of another kind, and in its form. */
  readonly storedAs?: { readonly group: string; readonly version: string; readonly plural: string };
  /** Can be read only: it comes from elsewhere. */
  readonly readOnly?: boolean;
  /** Served at `/status` too; the status is then changed only there. */
  readonly statusSubresource?: boolean;
  /** Further sub-resources, as discovery names them. */
  readonly subresources?: Readonly<Record<string, SubresourceInfo>>;
  /** Where objects keep what their scale shows; default: `.spec.replicas`, and a selector in `.spec.selector`. */
  readonly scalePaths?: ScalePaths;
  /** Writes to `/status` leave labels, annotations, finalizers and owners as they are. */
  readonly statusKeepsMetadata?: boolean;
  /** `metadata.generation` counts the changes of the spec. */
  readonly countsGenerations?: boolean;
  /** Finalizers need no prefix: the reference checks the metadata of the kind by the rules of all APIs alone. */
  readonly anyFinalizers?: boolean;
  /** An update must name the version it builds on; `validated` where the rules of metadata are what refuses it. */
  readonly updateNeedsVersion?: boolean | "validated";
  /** An update of an object that does not exist makes it. */
  readonly createsOnUpdate?: boolean;
  /** DELETE answers with the object rather than with a Status that names it. */
  readonly answersDeleted?: boolean;
  readonly noDeleteCollection?: boolean;
  /** Versions through which a deletion that does not say otherwise leaves what the object owns (DefaultGarbageCollectionPolicy). */
  readonly orphansByDefault?: readonly string[];
  /** How names may look; default: a DNS subdomain. */
  readonly names?: "subdomain" | "label" | "path-segment";
  /** Fills what the API fills in on reading, for new and stored objects alike. Pure. */
  readonly defaults?: (object: KubeObject) => KubeObject;
  /** Shapes a new object before validation: drops status, sets what only the server sets. Pure. */
  readonly prepareCreate?: (object: KubeObject) => KubeObject;
  /** What the first request to delete an object does to it before it is marked. Pure. */
  readonly prepareDelete?: (object: Stored) => KubeObject;
  /** Shapes an updated object before validation. Pure. */
  readonly prepareUpdate?: (next: KubeObject, old: Stored) => KubeObject;
  readonly prepareStatusUpdate?: (next: KubeObject, old: Stored) => KubeObject;
  /** Problems of a new or changed object. Pure. */
  readonly validate?: (object: KubeObject) => readonly FieldProblem[];
  /** Problems of a new object, beyond those of every write. Pure. */
  readonly validateCreate?: (object: KubeObject) => readonly FieldProblem[];
  /** Problems of a change. Pure. */
  readonly validateUpdate?: (next: KubeObject, old: Stored) => readonly FieldProblem[];
  readonly validateStatusUpdate?: (next: KubeObject, old: Stored) => readonly FieldProblem[];
  /** Columns of its tables in a version; default: those that the API server has for a kind of that name. */
  readonly columns?: (version: string) => readonly Column[];
  /** The type of its objects in a version, where they are not of the API's own structs (see schema/field-types). */
  readonly type?: (version: string) => FieldType;
  /** Fields that selectors may use in addition to metadata.name and metadata.namespace. */
  readonly fields?: (object: KubeObject) => Readonly<Record<string, string>>;
}

/** The name of the kind's resource in messages, and of its table unless that is another kind's. */
export function resourceKey(kind: Pick<Kind, "group" | "plural">): string {
  return kind.group === "" ? kind.plural : `${kind.plural}.${kind.group}`;
}

/** The name of the kind's table in the store. */
export function tableKey(kind: Pick<Kind, "group" | "plural" | "storedAs">): string {
  return resourceKey(kind.storedAs ?? kind);
}

/** `group/version` of the kind's stored objects. */
export function storedApiVersion(
  kind: Pick<Kind, "group" | "versions" | "storedAs" | "storageVersion">,
): string {
  const { storedAs } = kind;
  if (storedAs !== undefined)
    return storedAs.group === "" ? storedAs.version : `${storedAs.group}/${storedAs.version}`;
  const version = kind.storageVersion ?? kind.versions[0];
  return kind.group === "" ? version : `${kind.group}/${version}`;
}
