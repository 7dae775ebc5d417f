import { describe, expect, it } from "vitest";
import { expandVariables, mountVariable } from "./pod-runtime.ts";

describe("the environment of a container", () => {
  it("variables are expanded as Kubernetes does", () => {
    const env = { DIR: "/data", EMPTY: "" };
    expect(expandVariables("$(DIR)/x", env)).toBe("/data/x");
    expect(expandVariables("$$(DIR)", env)).toBe("$(DIR)");
    expect(expandVariables("$(NONE) $DIR $(EMPTY)!", env)).toBe("$(NONE) $DIR !");
  });
  it("a volume's variable is made of its name", () => {
    expect(mountVariable("my-data.0")).toBe("LONGSHORE_MOUNT_MY_DATA_0");
  });
});
