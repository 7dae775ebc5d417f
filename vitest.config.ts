import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests run against the sources, so that a test never passes on a stale build. */
const alias = [
  {
    find: /^@longshore\/([a-z]+)$/,
    replacement: `${fileURLToPath(new URL("./packages/", import.meta.url))}$1/src/index.ts`,
  },
];

export default defineConfig({
  resolve: { alias },
  test: {
    projects: [
      {
        resolve: { alias },
        test: {
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "scripts/**/*.test.ts", "tests/house-rules/**/*.test.ts"],
          isolate: false,
          pool: "threads",
          testTimeout: 20_000,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "e2e",
          include: ["tests/e2e/**/*.test.ts"],
          pool: "forks",
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "kubernetes",
          include: process.env.LONGSHORE_KUBERNETES === "1" ? ["tests/kubernetes/**/*.test.ts"] : [],
          pool: "forks",
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
