/** What every form of the Logger seam does alike. Run by the tests of the forms. */
import { describe, expect, test } from "vitest";
import type { Logger } from "./logger.ts";

/** A line, as far as all forms show it. */
export interface SeenLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A logger under test and its lines so far. */
export interface LoggerUnderTest {
  readonly logger: Logger;
  lines(): readonly SeenLine[];
}

/** Declares the contract's tests for one form. */
export function loggerContract(form: string, make: () => LoggerUnderTest): void {
  describe(`logger contract: ${form}`, () => {
    test("lines carry level, message and fields, in order and at once", () => {
      const { logger, lines } = make();
      logger.debug("looking");
      logger.info("attached", { volume: "vol-1", attempt: 2 });
      logger.warn("slow");
      logger.error("failed", {});
      expect(lines()).toEqual([
        { level: "debug", message: "looking", fields: {} },
        { level: "info", message: "attached", fields: { volume: "vol-1", attempt: 2 } },
        { level: "warn", message: "slow", fields: {} },
        { level: "error", message: "failed", fields: {} },
      ]);
    });

    test("a child adds its fields to each line, its parent's stay as they are", () => {
      const { logger, lines } = make();
      const child = logger.child({ component: "attacher" }).child({ node: "a" });
      child.info("x", { node: "b", volume: "v" });
      logger.info("y");
      expect(lines()).toEqual([
        { level: "info", message: "x", fields: { component: "attacher", node: "b", volume: "v" } },
        { level: "info", message: "y", fields: {} },
      ]);
    });

    test("no field can bring it down", () => {
      const { logger, lines } = make();
      const circular: Record<string, unknown> = {};
      circular.self = circular;
      logger.info("odd", { circular, big: 2n ** 64n, nothing: undefined, nil: null, error: new Error("x") });
      expect(lines()).toHaveLength(1);
    });
  });
}
