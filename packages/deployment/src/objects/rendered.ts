/** An object to deploy, and the comments in its manifest. */
import type { KubeObject } from "@longshore/kube";

/** An object to deploy with the comments of its manifest. */
export interface Rendered {
  readonly object: KubeObject;
  /** Comments by the path of what they stand above: member names and indexes, joined by dots. */
  readonly comments?: ReadonlyMap<string, string>;
}
