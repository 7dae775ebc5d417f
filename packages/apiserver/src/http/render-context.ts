/** How an answer is to be shown. */
import type { KubeObject } from "@longshore/kube";
import type { Kind } from "../api/kind.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import type { AnswerForm } from "./negotiate.ts";

/** What rendering an answer as a table needs in addition to the objects. */
export interface RenderContext {
  readonly kind: Kind;
  /** Version of the API in which the client asked. */
  readonly version: string;
  /** The version of Kubernetes that is shown. */
  readonly emulated: EmulatedVersion;
  readonly form: AnswerForm;
  readonly includeObject: string | undefined;
  readonly now: Date;
}

/** The group and version that the client requested. */
export function apiVersionOf({ kind, version }: RenderContext): string {
  return kind.group === "" ? version : `${kind.group}/${version}`;
}

/** The object in the version that the client requested. */
export function inVersion<T extends KubeObject>(object: T, context: RenderContext): T {
  const apiVersion = apiVersionOf(context);
  return object.kind !== context.kind.kind || object.apiVersion === apiVersion
    ? object
    : { ...object, apiVersion };
}
