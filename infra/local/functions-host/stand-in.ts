// Replacement of the module `@azure/functions-core`, which is on no registry: in the cloud the Node worker
// injects it when the functions library loads it. Import this file before the app; without it the library
// assumes a unit test and registers nothing.
import Module from 'node:module';
import {
  type FunctionMetadata,
  type Hook,
  type HookName,
  type LogLevel,
  type ProgrammingModel,
  registry,
} from './registry.ts';

class Disposable {
  #dispose: (() => void) | undefined;

  constructor(dispose: () => void) {
    this.#dispose = dispose;
  }

  static from(...several: { dispose?: () => void }[]): Disposable {
    return new Disposable(() => {
      for (const one of several) one.dispose?.();
    });
  }

  dispose(): void {
    this.#dispose?.();
    this.#dispose = undefined;
  }
}

const standIn = {
  version: '3.10.1',
  hostVersion: '4.1037.0',
  Disposable,
  registerFunction(given: Omit<FunctionMetadata, 'functionId'> & { functionId?: string }, callback: unknown) {
    if (registry.locked) throw new Error('A function can only be registered during app startup.');
    const functionId = given.functionId || given.name;
    if (registry.functions.has(functionId)) throw new Error(`the function "${functionId}" is registered twice`);
    registry.functions.set(functionId, { metadata: { ...given, functionId }, callback });
    return new Disposable(() => registry.functions.delete(functionId));
  },
  registerHook(name: HookName, hook: Hook) {
    registry.hooks[name].push(hook);
    return new Disposable(() => {
      registry.hooks[name] = registry.hooks[name].filter((one) => one !== hook);
    });
  },
  setProgrammingModel(model: ProgrammingModel) {
    registry.model = model;
  },
  getProgrammingModel: () => registry.model,
  log(level: LogLevel, _category: string, message: string) {
    registry.log(level, message);
  },
};

type Require = (this: unknown, name: string) => unknown;
const prototype = Module.prototype as unknown as { require: Require };
const requireFromDisk = prototype.require;
prototype.require = function (name) {
  return name === '@azure/functions-core' ? standIn : requireFromDisk.call(this, name);
};
