// The blob emulator imports applicationinsights for telemetry that this project never turns on. The real package
// brings 200 MB of OpenTelemetry and a second of import time, so the lockfile points it here.
const noop = new Proxy({}, { get: () => () => noop });
class TelemetryClient {
  constructor() {
    this.config = {};
    this.context = { tags: {}, keys: new Proxy({}, { get: (_, key) => String(key) }) };
    this.commonProperties = {};
  }
  track() {}
  trackEvent() {}
  trackRequest() {}
  trackException() {}
  flush() {}
  addTelemetryProcessor() {}
  initialize() {}
}
module.exports = {
  TelemetryClient,
  defaultClient: undefined,
  Contracts: {},
  setup: () => noop,
  start() {},
  dispose() {},
};
