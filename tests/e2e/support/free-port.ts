/** Ports that are free now, for a program that cannot choose one itself. */
import { createServer } from "node:net";

/** Listens for a moment: on that TCP port of the loopback interface, or on any for 0; returns which. @throws when it is taken */
export function freePort(port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
