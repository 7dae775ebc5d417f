import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findingCode, findingCodes, findingLink } from "./finding-codes.ts";

const guide = readFileSync(new URL("../../../../docs/guides/assess.md", import.meta.url), "utf8");

describe("the codes of findings", () => {
  it("each has its section in the guide, with the same words, and the guide has no other", () => {
    const sections = [...guide.matchAll(/^### (LS\d+)\n\n([\s\S]*?)(?=\n### |$(?![\s\S]))/gm)];
    expect(sections.map(([, code]) => code)).toEqual(findingCodes.map(({ code }) => code));
    for (const [index, { title, severity, why, remedy }] of findingCodes.entries()) {
      const heading = `${title.slice(0, 1).toUpperCase()}${title.slice(1)}`;
      expect(sections[index]?.[2]?.trim()).toBe(`**${heading}** (${severity}). ${why}\n\nRemedy: ${remedy}`);
    }
  });

  it("are found in any case of their letters", () => {
    expect(findingCode("ls1103")?.code).toBe("LS1103");
    expect(findingCode("LS9999")).toBeUndefined();
    expect(findingLink("LS1103")).toBe("docs/guides/assess.md#ls1103");
  });
});
