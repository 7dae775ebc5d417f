#!/usr/bin/env node
// Committed so that npm can link the command before the first build. Nothing here may need a newer Node than the oldest that is about.
import module from "node:module";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`longshore needs Node 20.19 or newer; this is Node ${process.versions.node}\n`);
  process.exitCode = 2;
} else {
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
}
