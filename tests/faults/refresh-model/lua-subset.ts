/** Runs the part of Lua 5.1 that the gateway's Redis scripts use, and refuses a script that holds anything else. */

/** `undefined` is nil. Lists are tables with the keys 1, 2, 3 and so on. */
export type LuaValue = string | number | boolean | undefined | readonly LuaValue[];
export type LuaFunction = (parameters: readonly LuaValue[]) => LuaValue;
export type LuaGlobals = Readonly<Record<string, LuaValue | LuaFunction>>;

type Variables = Map<string, LuaValue | LuaFunction>;
type Expression = (variables: Variables) => LuaValue;
/** Returns what the script returns; undefined when the script goes on. */
type Statement = (variables: Variables) => { readonly returned: LuaValue } | undefined;

const TOKEN = /'[^']*'|\d+|[A-Za-z_][\w.]*|==|~=|[=<(){}[\],]/g;
const BLOCK_ENDS = new Set(['', 'end', 'else', 'elseif']);
const KEYWORDS = new Set([...BLOCK_ENDS, 'and', 'or', 'not', 'if', 'then', 'local', 'return']);
const CONSTANTS = new Map<string, LuaValue>([
  ['nil', undefined],
  ['true', true],
  ['false', false],
]);

interface Operator {
  readonly precedence: number;
  readonly apply: (left: LuaValue, right: () => LuaValue) => LuaValue;
}
const OPERATORS = new Map<string, Operator>([
  ['or', { precedence: 1, apply: (left, right) => (isTrue(left) ? left : right()) }],
  ['and', { precedence: 2, apply: (left, right) => (isTrue(left) ? right() : left) }],
  ['==', { precedence: 3, apply: (left, right) => left === right() }],
  ['~=', { precedence: 3, apply: (left, right) => left !== right() }],
  ['<', { precedence: 3, apply: (left, right) => isLess(left, right()) }],
]);

export function compileLua(script: string): (globals: LuaGlobals) => LuaValue {
  const rest = script.replaceAll(TOKEN, '').trim();
  if (rest) throw new Error(`not in the subset of Lua: ${rest}`);
  const parser = new Parser(script.match(TOKEN) ?? []);
  const run = parser.block();
  parser.expect('');
  return (globals) => run(new Map(Object.entries(globals)))?.returned;
}

class Parser {
  readonly #tokens: readonly string[];
  #next = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  /** A variable lives until the script ends, so each name may be declared only once. */
  block(): Statement {
    const statements: Statement[] = [];
    while (!BLOCK_ENDS.has(this.#peek())) statements.push(this.#statement());
    return (variables) => {
      for (const statement of statements) {
        const result = statement(variables);
        if (result) return result;
      }
      return undefined;
    };
  }

  expect(token: string): void {
    if (!this.#takes(token)) throw new Error(`not in the subset of Lua: "${this.#peek()}" for "${token}"`);
  }

  #statement(): Statement {
    if (this.#takes('if')) return this.#if();
    if (this.#takes('return')) {
      const value = this.#expression();
      return (variables) => ({ returned: value(variables) });
    }
    const isLocal = this.#takes('local');
    const name = this.#name();
    const value = !isLocal && this.#peek() === '(' ? this.#call(name) : this.#assignment(name, isLocal);
    return (variables) => {
      value(variables);
      return undefined;
    };
  }

  #assignment(name: string, isLocal: boolean): Expression {
    this.expect('=');
    const value = this.#expression();
    return (variables) => {
      if (variables.has(name) === isLocal)
        throw new Error(`not in the subset of Lua: ${name} declared twice or never`);
      const assigned = value(variables);
      variables.set(name, assigned);
      return assigned;
    };
  }

  #if(): Statement {
    const condition = this.#expression();
    this.expect('then');
    const whenTrue = this.block();
    let whenFalse: Statement = () => undefined;
    if (this.#takes('elseif')) whenFalse = this.#if();
    else {
      if (this.#takes('else')) whenFalse = this.block();
      this.expect('end');
    }
    return (variables) => (isTrue(condition(variables)) ? whenTrue(variables) : whenFalse(variables));
  }

  #expression(above = 0): Expression {
    let left = this.#operand();
    for (;;) {
      const operator = OPERATORS.get(this.#peek());
      if (!operator || operator.precedence <= above) return left;
      this.#next++;
      const [first, second] = [left, this.#expression(operator.precedence)];
      left = (variables) => operator.apply(first(variables), () => second(variables));
    }
  }

  #operand(): Expression {
    if (this.#takes('not')) {
      const operand = this.#operand();
      return (variables) => !isTrue(operand(variables));
    }
    if (this.#takes('(')) {
      const inner = this.#expression();
      this.expect(')');
      return inner;
    }
    if (this.#takes('{')) {
      const items = this.#list('}');
      return (variables) => items.map((item) => item(variables));
    }
    const token = this.#peek();
    if (/^['\d]/.test(token))
      return this.#constant(token.startsWith("'") ? token.slice(1, -1) : Number(token));
    if (CONSTANTS.has(token)) return this.#constant(CONSTANTS.get(token));
    const name = this.#name();
    if (this.#peek() === '(') return this.#call(name);
    if (!this.#takes('[')) return (variables) => read(variables, name);
    const index = this.#expression();
    this.expect(']');
    return (variables) => itemOf(read(variables, name), numberIn(index(variables)));
  }

  #constant(value: LuaValue): Expression {
    this.#next++;
    return () => value;
  }

  #call(name: string): Expression {
    this.expect('(');
    const parameters = this.#list(')');
    return (variables) => {
      const called = variables.get(name);
      if (typeof called !== 'function') throw new Error(`not in the subset of Lua: ${name}()`);
      return called(parameters.map((parameter) => parameter(variables)));
    };
  }

  #list(closing: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#takes(closing)) {
      items.push(this.#expression());
      if (this.#peek() !== closing) this.expect(',');
    }
    return items;
  }

  #name(): string {
    const name = this.#peek();
    if (!/^[A-Za-z_]/.test(name) || KEYWORDS.has(name))
      throw new Error(`not in the subset of Lua: "${name}"`);
    this.#next++;
    return name;
  }

  /** Empty at the end of the script. */
  #peek(): string {
    return this.#tokens[this.#next] ?? '';
  }

  #takes(token: string): boolean {
    if (this.#peek() !== token) return false;
    this.#next++;
    return true;
  }
}

function isLess(left: LuaValue, right: LuaValue): boolean {
  if (typeof left === 'number' && typeof right === 'number') return left < right;
  throw new Error('attempt to compare values that are not numbers');
}

export function isTrue(value: LuaValue): boolean {
  return value !== undefined && value !== false;
}

/** Lua converts strings to numbers in functions, and never in comparisons. */
export function numberIn(value: LuaValue): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number !== 'number' || Number.isNaN(number))
    throw new Error('attempt to use a value as a number');
  return number;
}

export function text(value: LuaValue): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new Error('attempt to use a value as a string');
}

function itemOf(list: LuaValue, index: number): LuaValue {
  if (!Array.isArray(list)) throw new Error('attempt to index a value that is not a table');
  return list[index - 1];
}

function read(variables: Variables, name: string): LuaValue {
  const value = variables.get(name);
  if (typeof value === 'function') throw new Error(`not in the subset of Lua: ${name} without a call`);
  return value;
}
