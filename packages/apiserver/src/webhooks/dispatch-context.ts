/** What the calls of one request need. */
import type { KindTable } from "../api/kind-table.ts";
import type { CallContext } from "./call-webhook.ts";

/** See above. */
export interface DispatchContext extends CallContext {
  readonly kinds: KindTable;
  /** Does work in what is left of the time that one request may take the thread. @throws KubeApiError 504 */
  inTime<T>(work: () => T): T;
}
