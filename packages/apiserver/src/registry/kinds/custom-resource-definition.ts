/** CustomResourceDefinitions: the kinds that clients bring along. What becomes of them is in `custom/`. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { Column } from "../../api/column.ts";
import type { Kind } from "../../api/kind.ts";
import { ownWithNulls } from "../../api/own.ts";
import {
  cleanupFinalizer,
  type Definition,
  type StoredDefinition,
  storageVersionOf,
} from "../../custom/definition.ts";
import {
  type DefinitionFeatures,
  definitionProblems,
  definitionUpdateProblems,
  storedVersionProblems,
} from "../../custom/definition-problems.ts";
import { nameColumn } from "../../tables/column.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";

const createdAt: Column = {
  name: "Created At",
  type: "date",
  cell: (o) => o.metadata?.creationTimestamp ?? "<unknown>",
};

/** CustomResourceDefinition of apiextensions.k8s.io. */
export function customResourceDefinition(version: EmulatedVersion): Kind {
  const features: DefinitionFeatures = { rules: version.has("crdValidationRules") };
  return {
    group: "apiextensions.k8s.io",
    versions: ["v1"],
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    shortNames: ["crd", "crds"],
    namespaced: false,
    statusSubresource: true,
    countsGenerations: true,
    updateNeedsVersion: true,
    anyFinalizers: true,
    answersDeleted: true,
    defaults: (object) => withNames(object as Definition),
    prepareCreate: (object) => newStatus(object as Definition),
    prepareUpdate: (next) => recordStorage(next as Definition),
    prepareDelete: (object) => leaving(object as StoredDefinition),
    validate: (object) => definitionProblems(object, features),
    validateUpdate: definitionUpdateProblems,
    validateStatusUpdate: storedVersionProblems,
    columns: () => [nameColumn, createdAt],
  };
}

/** Names that are not given follow from the kind. */
function withNames(object: Definition): KubeObject {
  const { spec } = object;
  if (spec === undefined) return object;
  const { names } = spec;
  const kind = names?.kind ?? "";
  const complete =
    kind === ""
      ? names
      : {
          ...names,
          singular: names.singular || kind.toLowerCase(),
          listKind: names.listKind || `${kind}List`,
        };
  return {
    ...object,
    spec: { ...spec, names: complete, conversion: spec.conversion ?? { strategy: "None" } },
  } as KubeObject;
}

const noNames = { plural: "", kind: "" };

/** A new definition has no conditions yet: the list is null, as in the reference. */
function newStatus(object: Definition): KubeObject {
  const storedVersions = (object.spec?.versions ?? []).filter((v) => v.storage).map((v) => v.name);
  const status = ownWithNulls({ conditions: null, acceptedNames: noNames, storedVersions });
  return { ...object, status } as KubeObject;
}

/** The version that becomes the one of storage is remembered. */
function recordStorage(next: Definition): KubeObject {
  const { spec, status } = next;
  if (spec?.versions === undefined || status === undefined) return next;
  const storage = storageVersionOf(next);
  const stored = status.storedVersions ?? [];
  if (storage === "" || stored.includes(storage)) return next;
  return { ...next, status: ownWithNulls({ ...status, storedVersions: [...stored, storage] }) } as KubeObject;
}

/** The first request to delete it keeps a definition until its objects are gone. */
function leaving(object: StoredDefinition): KubeObject {
  const { finalizers = [] } = object.metadata;
  const kept = finalizers.includes(cleanupFinalizer) ? finalizers : [...finalizers, cleanupFinalizer];
  return { ...object, metadata: { ...object.metadata, finalizers: kept } } as Stored;
}
