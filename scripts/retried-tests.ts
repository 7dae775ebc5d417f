/** A reporter that names the tests that passed only when they were tried again, with how often, and counts them. */
import type { Reporter, TestModule } from "vitest/node";

/** Reports the tests that passed only when they were retried, and counts them. */
export default class RetriedTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    let count = 0;
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const retries = test.diagnostic()?.retryCount ?? 0;
        if (retries === 0) continue;
        count += 1;
        console.log(`RETRIED ${retries}x  ${module.relativeModuleId} > ${test.fullName}`);
      }
    }
    if (count > 0) console.log(`${count} tests were tried again`);
  }
}
