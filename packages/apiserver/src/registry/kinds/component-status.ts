/** ComponentStatus: says how the components are; of those, this server knows itself only. It can be read, and no more. */
import type { Kind } from "../../api/kind.ts";

/** See the file's header. */
export const componentStatus: Kind = {
  group: "",
  versions: ["v1"],
  kind: "ComponentStatus",
  plural: "componentstatuses",
  shortNames: ["cs"],
  namespaced: false,
  readOnly: true,
};
