import { expect, test } from "vitest";
import { isReadOnlySql } from "./sql.ts";

const READS = [
  "select 1",
  "SELECT * FROM item WHERE name = 'it''s; drop table x' ORDER BY id LIMIT 5;",
  'select "update", "a b" from "Item" i join other o on (o.id = i.id)',
  "with recent as (select id from item where n in (1, 2)) select count(*) from recent",
  "select coalesce(max(n), 0) - 1 from item where (a or not (b)) and exists (select 1 from t)",
  "values (1, 'a'), (2, 'b')",
  "select row_number() over (partition by kind order by id) from item",
  "select replace(name, 'a', 'b') from item -  0",
  "select case when n > 0 then 'x' else 'y' end from item",
];

// biome-ignore format: a list
const WRITES = [
  "", " ", ";", "select 1; select 2", "select 1;;", "select 1; drop table item", "update item set n = 1", "drop table item",
  "with gone as (delete from item returning id) select * from gone", "with a as (insert into t values (1)) select 1",
  "select 1 drop table item", "select 1\nexec sp_help", "select * into copy from item", "select 1 into outfile '/tmp/x'",
  "select * from item for update", "select * from item for share", "select nextval('s')", "select pg_sleep(1)",
  "select pg_catalog.count(1)", "select public.lower('x')", 'select "pg_terminate_backend"(1)', "select load_extension('x')",
  "select my_function()", "select setval('s', 1)", "select lo_import('/etc/passwd')", "select * from dblink('x', 'y')",
  "select 1 -- comment", "select 1 /* comment */", "select 1 /*!50000 union select 2 */", "select 1 # x", "select $$a$$",
  "select 'a\\' , (select 1) , '", "select `a` from t", "select [a] from t", "select @a := 1", "select @@version",
  "select n::regclass from t", "select {fn now()}", "explain analyze delete from item", "explain select 1",
  "pragma journal_mode = off", "attach 'x' as y", "call f()", "do 1", "show tables", "table item", "begin", "copy item to '/tmp/x'",
  "select 'open", 'select "open', "select 1 \u00a0drop", "ſelect 1", "select 1 union delete from item", "merge into a using b on 1",
  "select (select 1)(2)", "select '1'('2')", "set role admin", "lock tables item write", "select\u0000 1", "select 1 where x ~ y(1)",
  "SELECT 1 UPDATE item", "select top(1) * from item", "vacuum", "replace into item values (1)", "truncate item",
];

test.each(READS)("sql: %s only reads", (text) => {
  expect(isReadOnlySql(text)).toBe(true);
});

test.each(WRITES)("sql: %j counts as a write", (text) => {
  expect(isReadOnlySql(text)).toBe(false);
});

test("sql: a text that is too long to look at counts as a write, and a hostile one costs little", () => {
  expect(isReadOnlySql(`select '${"x".repeat(100_000)}'`)).toBe(false);
  const begun = performance.now();
  expect(isReadOnlySql(`select ${"'".repeat(99_001)}`)).toBe(false);
  expect(isReadOnlySql(`select ${"(".repeat(50_000)}`)).toBe(true);
  expect(performance.now() - begun).toBeLessThan(2_000);
});
