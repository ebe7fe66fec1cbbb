//! The gate with its orders: named cases, two of everything, and the life of an order.

mod cases;
mod histories;
mod isolation;
mod judged;
mod life;
mod numbered;
mod rates;
mod restored;
mod rules;
mod tree;
mod worth;
