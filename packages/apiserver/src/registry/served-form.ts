/**
 * Kinds whose versions differ, or that another group's kind keeps in its table: objects are stored in one form, and
 * shown and read in the form of the version that is requested. What has no conversion differs in `apiVersion` only.
 */
import type { KubeObject, Stored } from "@longshore/kube";
import type { ApiAnswer, WatchItem, WatchStream } from "../api/api-request.ts";
import { type Kind, storedApiVersion } from "../api/kind.ts";
import { own } from "../api/own.ts";

/** `group/version` as objects of the kind carry it in that version. */
export function apiVersionOf(of: Pick<Kind, "group">, version: string): string {
  return of.group === "" ? version : `${of.group}/${version}`;
}

/** Converted objects, by the kind, the stored object and the version: they are shared as the stored ones are. */
const converted = new WeakMap<Kind, WeakMap<object, Map<string, Stored>>>();

/** A stored object as that version shows it. */
export function servedForm(of: Kind, version: string, object: Stored): Stored {
  const apiVersion = apiVersionOf(of, version);
  if (of.conversion === undefined && object.apiVersion === apiVersion) return object;
  let ofKind = converted.get(of);
  if (ofKind === undefined) {
    ofKind = new WeakMap();
    converted.set(of, ofKind);
  }
  const known = ofKind.get(object)?.get(apiVersion);
  if (known !== undefined) return known;
  const form = of.conversion?.fromStored(object, version) ?? object;
  const result =
    form === object && object.apiVersion === apiVersion
      ? object
      : (own({ ...form, apiVersion, kind: of.kind } as KubeObject) as Stored);
  const forms = ofKind.get(object) ?? new Map<string, Stored>();
  ofKind.set(object, forms.set(apiVersion, result));
  return result;
}

/** An object as a client sent it in that version, in the form in which it is stored. */
export function storedForm(of: Kind, version: string, object: KubeObject): KubeObject {
  if (of.conversion === undefined) return object;
  return { ...of.conversion.toStored(object, version), apiVersion: storedApiVersion(of), kind: of.kind };
}

/** The answer in the version that was requested; itself for kinds that are alike in all versions. */
export function servedAnswer(of: Kind, version: string, answer: ApiAnswer): ApiAnswer {
  if (of.conversion === undefined) return answer;
  const form = <T extends KubeObject>(object: T): T =>
    object.kind === of.kind
      ? (servedForm(of, version, object as KubeObject as Stored) as KubeObject as T)
      : object;
  switch (answer.type) {
    case "object":
      return { ...answer, object: form(answer.object) };
    case "list":
      return { ...answer, items: answer.items.map(form) };
    case "watch":
      return { ...answer, stream: convertedStream(answer.stream, form) };
  }
}

function convertedStream(stream: WatchStream, form: (object: Stored) => Stored): WatchStream {
  const item = (given: WatchItem): WatchItem =>
    "object" in given ? { ...given, object: form(given.object) } : given;
  return {
    ...stream,
    take() {
      const next = stream.take();
      return next === undefined || next === "ended" ? next : item(next);
    },
    async next() {
      const next = await stream.next();
      return next === undefined ? undefined : item(next);
    },
    close: () => stream.close(),
  };
}
