/** How field management sees the objects of one kind, in one version and through one path. */
import type { KubeObject } from "@longshore/kube";
import type { FieldType } from "../api/field-type.ts";
import type { FieldSet } from "./field-set.ts";

/** How field management reads the objects of one kind, in one version and through one path. */
export interface FieldView {
  /** `group/version` of the request, in which its objects are. */
  readonly apiVersion: string;
  readonly type: FieldType;
  /** The object in another version of the kind; undefined when it is not served. */
  convert(object: KubeObject, apiVersion: string): KubeObject | undefined;
  /** Fields that a write through this path cannot change; undefined when there are none. */
  readonly ignored: FieldSet | undefined;
  readonly appliedOrder: boolean;
  readonly emptyMembers: boolean;
}
