#!/usr/bin/env node
// Committed so that npm can link the command before the first build.
import module from "node:module";

// From Node 22 on compiled code is kept between runs.
module.enableCompileCache?.();
import("../dist/main.js").then(
  (m) => m.main(process.argv),
  (error) => {
    if (error?.code !== "ERR_MODULE_NOT_FOUND") throw error;
    process.stderr.write(`longshore is not built yet (${error.message}); run: npm run build\n`);
    process.exitCode = 2;
  },
);
