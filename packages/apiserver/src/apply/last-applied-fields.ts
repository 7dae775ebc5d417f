/**
 * From client-side to server-side apply: kubectl keeps what it applied in an annotation. Its first server-side apply
 * may take the fields that still have those values, and later ones keep the annotation up to date for older clients
 * (apiserver, fieldmanager/lastappliedmanager.go and lastappliedupdater.go).
 */
import type { KubeObject } from "@longshore/kube";
import { appliedSet } from "./applied-set.ts";
import { compareObjects } from "./compare-objects.ts";
import { difference, type FieldSet } from "./field-set.ts";
import type { FieldView } from "./field-view.ts";

/** Where kubectl keeps what it applied. */
export const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration";

/** The manager that these rules apply to. */
export const migratingManager = "kubectl";

const annotationBytesMax = 256 * 1024;

/** The fields that have the values that a client-side apply has set; undefined where none was made. */
export function lastAppliedFields(view: FieldView, live: KubeObject): FieldSet | undefined {
  const text = live.metadata?.annotations?.[lastAppliedAnnotation];
  const last = text === undefined || text === "" ? undefined : objectIn(text);
  if (last === undefined || last.apiVersion !== view.apiVersion) return undefined;
  const { added, modified, removed } = compareObjects(view.type, last, live);
  return [added, modified, removed].reduce(difference, appliedSet(view.type, last, view));
}

function objectIn(text: string): KubeObject | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The object with what was applied in its annotation, where it has that annotation already. */
export function withLastApplied(object: KubeObject, configuration: KubeObject): KubeObject {
  const annotations = object.metadata?.annotations;
  if (annotations === undefined || annotations === null || !Object.hasOwn(annotations, lastAppliedAnnotation))
    return object;
  // As kubectl writes it: members in order, and a newline at the end.
  const text = `${JSON.stringify(sorted(withoutAnnotation(configuration)))}\n`;
  if (Buffer.byteLength(text) > annotationBytesMax) return object;
  const metadata = { ...object.metadata, annotations: { ...annotations, [lastAppliedAnnotation]: text } };
  return { ...object, metadata };
}

function withoutAnnotation(configuration: KubeObject): KubeObject {
  const annotations = configuration.metadata?.annotations;
  if (annotations === undefined || annotations === null) return configuration;
  const { [lastAppliedAnnotation]: _, ...rest } = annotations;
  return { ...configuration, metadata: { ...configuration.metadata, annotations: rest } };
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}
