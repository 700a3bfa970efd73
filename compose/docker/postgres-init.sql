-- Runs once, when the volume is new: the role, its database and the extension.
\getenv password PORTICO_POSTGRES_PASSWORD
create role portico login password :'password';
create database portico owner portico;
\connect portico
create extension vector;
