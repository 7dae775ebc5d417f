/** ComponentStatus: says how the components are; of those, this server knows itself only. It can be read, and no more. */
import type { Kind } from "../../api/kind.ts";

/** The read-only kind ComponentStatus. */
export const componentStatus: Kind = {
  group: "",
  versions: ["v1"],
  kind: "ComponentStatus",
  plural: "componentstatuses",
  shortNames: ["cs"],
  namespaced: false,
  readOnly: true,
};
