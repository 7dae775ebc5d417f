/**
 * Rules for StorageClass parameters and topologies that several plugins share. Parameter names are
 * matched without regard to case; those without a rule keep their spelling.
 */

import { lowerCase } from "./go-text.ts";
import { keepIfEqual, set } from "./objects.ts";
import { BETA_ZONE, ZONE } from "./topology.ts";
import type { Trace } from "./trace.ts";
import { objectLabel, TranslationError } from "./translation-error.ts";
import type { Draft, DraftMap, StorageClass, TopologySelectorTerm } from "./types.ts";

/** The parameter by which a CSI provisioner learns the file system. */
export const CSI_FSTYPE = "csi.storage.k8s.io/fstype";

/** The result for one parameter: names and values to write, or nothing where it has no counterpart. */
export type ParameterRule = (
  value: string,
  name: string,
) => readonly (readonly [name: string, value: string])[];

/** `fstype`, which every driver reads under the provisioner's name. */
export const fsTypeRule: ParameterRule = (value) => [[CSI_FSTYPE, value]];

/** Parameters rewritten by the rules for their lower-case names; others are copied unless `dropOthers`. */
export function rewriteParameters(
  parameters: StorageClass["parameters"],
  rules: { readonly [lowerCaseName: string]: ParameterRule },
  trace: Trace | undefined,
  dropOthers = false,
): DraftMap {
  const result: DraftMap = {};
  for (const [name, value] of Object.entries(parameters ?? {})) {
    const lower = lowerCase(name);
    const rule = Object.hasOwn(rules, lower) ? rules[lower] : undefined;
    const written = rule?.(value, name) ?? (dropOthers ? [] : [[name, value] as const]);
    // A parameter may be named `__proto__`, which an assignment would take for the prototype.
    for (const [to, toValue] of written) set(result, to, toValue);
    if (trace !== undefined) traceParameter(trace, name, value, rule !== undefined, written);
  }
  return result;
}

function traceParameter(
  trace: Trace,
  name: string,
  value: string,
  ruled: boolean,
  written: ReturnType<ParameterRule>,
): void {
  const from = `parameters[${name}]`;
  if (written.length === 0 && !ruled) trace({ from, to: "", value, why: "the driver has no such parameter" });
  for (const [to, toValue] of written) {
    const why = to === name ? "copied" : "the driver's name for it";
    trace({ from, to: `parameters[${to}]`, value: toValue, why });
  }
}

/** `class` with these parameters and topologies, or `class` itself where nothing changed. */
export function withParameters(
  storageClass: StorageClass,
  parameters: DraftMap,
  allowedTopologies: StorageClass["allowedTopologies"],
): StorageClass {
  const kept = keepIfEqual(storageClass.parameters, parameters);
  if (
    kept === (storageClass.parameters ?? undefined) &&
    allowedTopologies === storageClass.allowedTopologies
  ) {
    return storageClass;
  }
  const result: Draft<StorageClass> = { ...storageClass };
  if (kept === undefined) delete result.parameters;
  else result.parameters = kept;
  if (allowedTopologies !== undefined) result.allowedTopologies = allowedTopologies;
  return result;
}

/** Topologies with the zone keys of Kubernetes under the driver's key, their values through `mapValues`. */
export function translateTopologies(
  terms: StorageClass["allowedTopologies"],
  csiKey: string,
  trace: Trace | undefined,
  mapValues?: (values: readonly string[]) => readonly string[],
): StorageClass["allowedTopologies"] {
  if (terms == null || terms.length === 0) return terms;
  let changed = false;
  const translated = terms.map((term): TopologySelectorTerm => {
    const expressions = term.matchLabelExpressions?.map((expression) => {
      const isZone = expression.key === ZONE || expression.key === BETA_ZONE;
      // Other keys stay as in the newest library; that of 1.20 refuses them (docs/behaviour/volume-plugins.md 8.3).
      const key = isZone ? csiKey : expression.key;
      const values =
        key === csiKey && mapValues !== undefined ? mapValues(expression.values) : expression.values;
      if (key === expression.key && values === expression.values) return expression;
      changed = true;
      trace?.({
        from: `allowedTopologies[${expression.key}]`,
        to: `allowedTopologies[${key}]`,
        value: values,
        why: isZone ? "the driver's key for zones" : "fault domains mean no zone to the driver",
      });
      return { ...expression, key, values };
    });
    return expressions === undefined ? term : { ...term, matchLabelExpressions: expressions };
  });
  return changed ? translated : terms;
}

/**
 * Parameters for a plugin whose classes may name zones as parameters: `zone` and `zones` leave and become an
 * allowed topology.
 * @throws TranslationError when the class names zones both ways
 */
export function rewriteZonedClass(
  storageClass: StorageClass,
  csiKey: string,
  rules: { readonly [lowerCaseName: string]: ParameterRule },
  trace: Trace | undefined,
  mapValues?: (values: readonly string[]) => readonly string[],
): StorageClass {
  let zones: readonly string[] | undefined;
  const takeZones = (found: readonly string[], from: string) => {
    zones = found;
    trace?.({
      from,
      to: `allowedTopologies[${csiKey}]`,
      value: found,
      why: "drivers take zones as topology only",
    });
    return [];
  };
  const parameters = rewriteParameters(
    storageClass.parameters,
    {
      ...rules,
      zone: (value) => takeZones([value], "parameters[zone]"),
      zones: (value) => takeZones(value.split(","), "parameters[zones]"),
    },
    trace,
  );
  if (zones === undefined) {
    const topologies = translateTopologies(storageClass.allowedTopologies, csiKey, trace, mapValues);
    return withParameters(storageClass, parameters, topologies);
  }
  // The reference refuses this too (docs/behaviour/volume-plugins.md 8.3).
  if ((storageClass.allowedTopologies?.length ?? 0) > 0) {
    throw new TranslationError(
      objectLabel("StorageClass", storageClass.metadata),
      "allowedTopologies",
      "the class names zones both here and in its zone or zones parameter",
      "keep one of the two",
    );
  }
  const values = mapValues?.(zones) ?? zones;
  return withParameters(storageClass, parameters, [{ matchLabelExpressions: [{ key: csiKey, values }] }]);
}
