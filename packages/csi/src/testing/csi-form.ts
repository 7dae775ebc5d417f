/** What a form of the CSI seams is put to the contract with. */
import type { CsiConnector, CsiListener } from "../index.ts";

/** One form under test. */
export interface CsiForm {
  readonly connector: CsiConnector;
  readonly listener: CsiListener;
  /** A fresh endpoint. */
  endpoint(): string;
}
