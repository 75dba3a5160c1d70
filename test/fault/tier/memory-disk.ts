// A file system in memory. It outlives the processes that use it, and each of their operations is one step of a
// simulated run, at which a process may be killed.
import { constants } from 'node:fs';
import path from 'node:path';
import type { Disk } from '../../../infra/pool/agent/store/contract.ts';

interface FileNode {
  readonly ino: number;
  bytes: Buffer;
  mtimeMs: number;
  ctimeMs: number;
}
type Folder = Map<string, FileNode | Folder>;
type Node = FileNode | Folder;

/** Runs an operation of a process: now, later, or never. `partly` is its effect when the process is killed within. */
export type Step = <T>(effect: () => T, partly?: () => void) => Promise<T>;

const failWith = (code: string, file: string): never => {
  throw Object.assign(new Error(`${code}: ${file}`), { code });
};
const isFolder = (node: Node): node is Folder => node instanceof Map;

export class MemoryDisk {
  readonly #root: Folder = new Map();
  readonly #now: () => number;
  /** Counts changes: the time of a change, finer than any clock. */
  #changes = 0;
  /** No byte can be written. */
  isFull = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the files below a folder with their bytes. */
  files(folder: string): ReadonlyMap<string, Buffer> {
    const found = this.#find(folder);
    const files = new Map<string, Buffer>();
    const add = (node: Node, at: string) => {
      if (!isFolder(node)) files.set(at, node.bytes);
      else for (const [name, child] of node) add(child, at === '' ? name : `${at}/${name}`);
    };
    if (found) add(found, '');
    return files;
  }

  /** Changes a file in place, as a process with every right can. */
  tamper(file: string): void {
    const node = this.#find(file);
    if (!node || isFolder(node)) return;
    this.#write(node, Buffer.concat([node.bytes.subarray(0, -1), Buffer.from('!')]));
  }

  #find(file: string): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const name of file.split('/').filter((one) => one !== '')) {
      if (!node || !isFolder(node)) return undefined;
      node = node.get(name);
    }
    return node;
  }

  #get = (file: string): Node => this.#find(file) ?? failWith('ENOENT', file);

  #file(file: string): FileNode {
    const node = this.#get(file);
    return isFolder(node) ? failWith('EISDIR', file) : node;
  }

  #parent(file: string): Folder {
    const node = this.#get(path.dirname(file));
    return isFolder(node) ? node : failWith('ENOTDIR', file);
  }

  #create(file: string): FileNode {
    const node = { ino: ++this.#changes, bytes: Buffer.alloc(0), mtimeMs: this.#now(), ctimeMs: this.#changes };
    this.#parent(file).set(path.basename(file), node);
    return node;
  }

  #write(node: FileNode, bytes: Buffer): void {
    node.bytes = bytes;
    node.mtimeMs = this.#now();
    node.ctimeMs = ++this.#changes;
  }

  /** A full disk takes half of what is written to it. */
  #put(node: FileNode, bytes: Buffer): void {
    this.#write(node, this.isFull ? bytes.subarray(0, (node.bytes.length + bytes.length) >> 1) : bytes);
    if (this.isFull) failWith('ENOSPC', 'disk');
  }

  #handle(node: Node, step: Step) {
    let next = 0;
    const bytesAt = (at: number, piece: Uint8Array) => {
      const { bytes } = node as FileNode;
      return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + piece.length)]);
    };
    return {
      read: (target: Buffer, offset: number, length: number, position: number | null) =>
        step(() => {
          const at = position ?? next;
          const bytesRead = (node as FileNode).bytes.copy(target, offset, at, at + length);
          next = at + bytesRead;
          return { bytesRead };
        }),
      write: (source: Uint8Array, offset: number, length: number, at: number) => {
        const piece = source.subarray(offset, offset + length);
        const put = () => {
          this.#put(node as FileNode, bytesAt(at, piece));
          return { bytesWritten: length };
        };
        const partly = () => this.#write(node as FileNode, bytesAt(at, piece.subarray(0, length >> 1)));
        return step(put, partly);
      },
      sync: () => step(() => {}),
      // The system closes the files of a killed process.
      close: async () => {},
    };
  }

  /** Opens the file system for one process. */
  open(step: Step): Disk {
    const disk = {
      open: (file: string, flags = 'r') =>
        step(() => {
          if (flags !== 'wx') return this.#handle(this.#get(file), step);
          if (this.#find(file)) failWith('EEXIST', file);
          return this.#handle(this.#create(file), step);
        }),
      mkdir: (folder: string) =>
        step(() => {
          let node = this.#root;
          for (const name of folder.split('/').filter((one) => one !== '')) {
            const child = node.get(name) ?? new Map();
            node.set(name, child);
            node = isFolder(child) ? child : failWith('EEXIST', folder);
          }
        }),
      readdir: (folder: string, options?: object) => step(() => this.#list(folder, options !== undefined)),
      readFile: (file: string) => step(() => this.#file(file).bytes.toString()),
      writeFile: (file: string, text: string, options?: { flag?: string }) =>
        step(
          () => {
            if (options?.flag === 'wx' && this.#find(file)) failWith('EEXIST', file);
            const known = this.#find(file);
            this.#put(known && !isFolder(known) ? known : this.#create(file), Buffer.from(text));
          },
          () => this.#find(file) ?? this.#create(file),
        ),
      stat: (file: string) =>
        step(() => {
          const node = this.#get(file);
          if (isFolder(node)) return { dev: 1, ino: 0, size: 0, mtimeMs: 0, ctimeMs: 0 };
          return { dev: 1, ino: node.ino, size: node.bytes.length, mtimeMs: node.mtimeMs, ctimeMs: node.ctimeMs };
        }),
      utimes: (file: string, _: number, seconds: number) =>
        step(() => {
          const node = this.#file(file);
          [node.mtimeMs, node.ctimeMs] = [seconds * 1_000, ++this.#changes];
        }),
      chmod: (file: string) =>
        step(() => {
          this.#file(file).ctimeMs = ++this.#changes;
        }),
      rename: (from: string, to: string) =>
        step(() => {
          const node = this.#get(from);
          const there = this.#find(to);
          if (there && isFolder(there) && there.size > 0) failWith('ENOTEMPTY', to);
          this.#parent(to).set(path.basename(to), node);
          this.#parent(from).delete(path.basename(from));
          if (!isFolder(node)) node.ctimeMs = ++this.#changes;
        }),
      rm: (file: string) =>
        step(
          () => void (this.#find(file) && this.#parent(file).delete(path.basename(file))),
          () => this.#removeOne(file),
        ),
      unlink: (file: string) =>
        step(() => {
          this.#file(file);
          this.#parent(file).delete(path.basename(file));
        }),
      copyFile: (from: string, to: string, mode = 0) => {
        const copy = (part: number) => {
          const { bytes } = this.#file(from);
          if ((mode & constants.COPYFILE_EXCL) !== 0 && this.#find(to)) failWith('EEXIST', to);
          const known = this.#find(to);
          const target = known && !isFolder(known) ? known : this.#create(to);
          this.#put(target, Buffer.from(bytes.subarray(0, bytes.length / part)));
        };
        return step(
          () => copy(1),
          () => copy(2),
        );
      },
    };
    return disk as unknown as Disk;
  }

  #list(folder: string, recursive: boolean): unknown[] {
    const node = this.#get(folder);
    if (!isFolder(node)) return failWith('ENOTDIR', folder);
    if (!recursive) return [...node.keys()];
    return [...node].flatMap(([name, child]) => {
      const below = isFolder(child) ? this.#list(path.join(folder, name), true) : [];
      const isDirectory = () => isFolder(child);
      return [{ name, parentPath: folder, isFile: () => !isFolder(child), isDirectory }, ...below];
    });
  }

  /** Removes the first file of a folder: the process is killed within. */
  #removeOne(folder: string): void {
    const node = this.#find(folder);
    if (!node || !isFolder(node)) return;
    const [first] = node.keys();
    const child = first === undefined ? undefined : node.get(first);
    if (first === undefined || !child) return;
    if (isFolder(child)) this.#removeOne(path.join(folder, first));
    else node.delete(first);
  }
}
